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

// pageMemory returns the memory in bytes for decoding the first rows of a column: the memory of its largest page,
// unpacked and as values, plus the memory of its dictionary. It reads only the headers of the pages, except if a page
// could unpack to more than the free bytes. The content of such a page is unpacked to verify its length; pageMemory
// returns errPageSize if the content is longer than the header states.
func pageMemory(f *parquet.File, column *format.ColumnMetaData, rows, free int64) (bytes int64, err error) {
	start := column.DataPageOffset
	if dictionaryStart := column.DictionaryPageOffset; dictionaryStart > 0 {
		start = min(start, dictionaryStart)
	}
	section := io.NewSectionReader(f, start, column.TotalCompressedSize)
	r := bufio.NewReaderSize(section, 512)
	headers := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r))
	largestPage := int64(0)
	for rows > 0 {
		var header format.PageHeader
		if headers.Decode(&header) != nil || header.CompressedPageSize < 0 {
			break // reading the page reports the error
		}
		contentStart, _ := section.Seek(0, io.SeekCurrent)
		contentStart -= int64(r.Buffered())
		packedBytes, levelBytes := int64(header.CompressedPageSize), int64(0)
		if v2 := header.DataPageHeaderV2.V; header.DataPageHeaderV2.Valid { // its levels are not compressed
			levelBytes = int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
		}
		if packedBytes > free/maxRatio || column.Codec == format.Brotli {
			content := io.NewSectionReader(f, start+contentStart+levelBytes, packedBytes-levelBytes)
			if !unpacksWithin(column.Codec, content, int64(header.UncompressedPageSize)) {
				return 0, errPageSize
			}
		}
		values := int64(header.DataPageHeader.V.NumValues) + int64(header.DataPageHeaderV2.V.NumValues)
		decodedBytes := bytesPerValue * (values + int64(header.DictionaryPageHeader.V.NumValues))
		// The unpacked page, and a copy of its values.
		pageBytes := packedBytes + 2*int64(header.UncompressedPageSize) + decodedBytes
		if header.Type == format.DictionaryPage {
			bytes += pageBytes
		} else {
			largestPage, rows = max(largestPage, pageBytes), rows-values
		}
		section.Seek(contentStart+packedBytes, io.SeekStart)
		r.Reset(section)
	}
	return bytes + largestPage, nil
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
