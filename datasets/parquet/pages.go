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
	// pageValue is the memory, in bytes, that decoding takes for each value of a page beside the unpacked page.
	pageValue = 16
	// maxRatio is the largest ratio by which zstd and gzip pack; that of brotli is larger.
	maxRatio = 1 << 15
	// maxWindow is the largest window of zstd that is read, in bytes: the limit of the program zstd.
	maxWindow = 1 << 27
)

// errPageSize is the error for a page whose content is longer than its header says.
var errPageSize = errors.New("a page is longer than its header says")

// pageMemory returns the memory, in bytes, that decoding the first rows of a column takes: of its largest page, unpacked
// and as values, and of its dictionary. Only the headers of pages are read, and the content of a page that may unpack
// to more than the free bytes, which is an error if it is longer than its header says.
func pageMemory(f *parquet.File, m *format.ColumnMetaData, rows, free int64) (bytes int64, err error) {
	start := m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 {
		start = min(start, d)
	}
	section := io.NewSectionReader(f, start, m.TotalCompressedSize)
	r := bufio.NewReaderSize(section, 512)
	headers := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r))
	largest := int64(0)
	for rows > 0 {
		var h format.PageHeader
		if headers.Decode(&h) != nil || h.CompressedPageSize < 0 {
			break // reading the page says what is wrong
		}
		at, _ := section.Seek(0, io.SeekCurrent)
		at -= int64(r.Buffered())
		packed, levels := int64(h.CompressedPageSize), int64(0)
		if v := h.DataPageHeaderV2.V; h.DataPageHeaderV2.Valid {
			levels = int64(v.RepetitionLevelsByteLength) + int64(v.DefinitionLevelsByteLength)
		}
		if packed > free/maxRatio || m.Codec == format.Brotli {
			content := io.NewSectionReader(f, start+at+levels, packed-levels)
			if !fits(m.Codec, content, int64(h.UncompressedPageSize)) {
				return 0, errPageSize
			}
		}
		values := int64(h.DataPageHeader.V.NumValues) + int64(h.DataPageHeaderV2.V.NumValues)
		page := packed + 2*int64(h.UncompressedPageSize) + pageValue*(values+int64(h.DictionaryPageHeader.V.NumValues))
		if h.Type == format.DictionaryPage {
			bytes += page
		} else {
			largest, rows = max(largest, page), rows-values
		}
		section.Seek(at+packed, io.SeekStart)
		r.Reset(section)
	}
	return bytes + largest, nil
}

// fits reports whether a page unpacks to at most size bytes. Other codecs than gzip, brotli and zstd pack by a small
// ratio, or state the length.
func fits(codec format.CompressionCodec, page io.Reader, size int64) bool {
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
