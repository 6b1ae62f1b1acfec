package parquet

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// bytesPerValue is the memory in bytes that decoding takes for each value of a page, in addition to the unpacked
	// page.
	bytesPerValue = 16
	// maxRatio is an upper bound of the compression ratio of zstd and gzip; that of brotli is larger. A packed page of
	// at most 1/maxRatio of the free memory cannot exceed it when unpacked, so it is not unpacked in advance. A larger
	// value unpacks more pages twice.
	maxRatio = 1 << 15
	// maxWindow is the largest window of zstd that is accepted, in bytes. It is the limit of the zstd program.
	maxWindow = 1 << 27
)

// errPageSize is the error for a page whose content is longer than its header states.
var errPageSize = errors.New("a page is longer than its header says")

// pageMemory returns the memory in bytes for decoding the first rows of a column: that of its largest page, unpacked
// and as values, plus that of its dictionary. It reads the headers of the pages only, except if a page could unpack to
// more than the free bytes. The content of such a page is unpacked to verify its length; it is an error if it is longer
// than its header states.
func pageMemory(f *parquet.File, column *format.ColumnMetaData, rows, free int64) (bytes int64, err error) {
	start := column.DataPageOffset
	if d := column.DictionaryPageOffset; d > 0 {
		start = min(start, d)
	}
	section := io.NewSectionReader(f, start, column.TotalCompressedSize)
	r := bufio.NewReaderSize(section, 512)
	headers := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r))
	largest := int64(0)
	for rows > 0 {
		var h format.PageHeader
		if headers.Decode(&h) != nil || h.CompressedPageSize < 0 {
			break // reading the page reports the error
		}
		contentStart, _ := section.Seek(0, io.SeekCurrent)
		contentStart -= int64(r.Buffered())
		packed, levelBytes := int64(h.CompressedPageSize), int64(0)
		if v := h.DataPageHeaderV2.V; h.DataPageHeaderV2.Valid {
			levelBytes = int64(v.RepetitionLevelsByteLength) + int64(v.DefinitionLevelsByteLength)
		}
		if packed > free/maxRatio || column.Codec == format.Brotli {
			content := io.NewSectionReader(f, start+contentStart+levelBytes, packed-levelBytes)
			if !unpacksWithin(column.Codec, content, int64(h.UncompressedPageSize)) {
				return 0, errPageSize
			}
		}
		values := int64(h.DataPageHeader.V.NumValues) + int64(h.DataPageHeaderV2.V.NumValues)
		decoded := bytesPerValue * (values + int64(h.DictionaryPageHeader.V.NumValues))
		page := packed + 2*int64(h.UncompressedPageSize) + decoded // the unpacked page, and a copy of its values
		if h.Type == format.DictionaryPage {
			bytes += page
		} else {
			largest, rows = max(largest, page), rows-values
		}
		section.Seek(contentStart+packed, io.SeekStart)
		r.Reset(section)
	}
	return bytes + largest, nil
}

// unpacksWithin reports whether a page unpacks to at most size bytes. It returns true without unpacking for codecs
// other than gzip, brotli and zstd, because their compression ratio is small, or they state the unpacked length.
func unpacksWithin(codec format.CompressionCodec, page io.Reader, size int64) bool {
	var r io.Reader
	var err error
	switch codec {
	case format.Gzip:
		r, err = gzip.NewReader(page)
	case format.Brotli:
		r = brotli.NewReader(page)
	case format.Zstd:
		r, err = zstd.NewReader(page, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	default:
		return true
	}
	if err != nil {
		return true // the page cannot be unpacked at all
	}
	n, _ := io.CopyN(io.Discard, r, size+1)
	return n <= size
}
