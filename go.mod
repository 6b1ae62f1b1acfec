module github.com/krrlab/lab

go 1.26

require (
	git.sr.ht/~sbinet/gg v0.7.0
	github.com/andybalholm/brotli v1.1.1
	github.com/ebitengine/purego v0.11.3
	github.com/go-gota/gota v0.12.0
	github.com/goplus/ixgo v1.1.0
	github.com/goplus/reflectx v1.7.0
	github.com/klauspost/compress v1.17.9
	github.com/parquet-go/parquet-go v0.32.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	github.com/timandy/routine v1.1.5
	github.com/ulikunitz/xz v0.5.17
	github.com/yuin/goldmark v1.8.7
	golang.org/x/image v0.45.0
	golang.org/x/mod v0.40.0
	golang.org/x/sys v0.47.0
	golang.org/x/term v0.45.0
	golang.org/x/text v0.41.0
	golang.org/x/tools v0.49.0
	gonum.org/v1/gonum v0.17.0
	gonum.org/v1/plot v0.17.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-runewidth v0.0.15 // indirect
	github.com/parquet-go/bitpack v1.0.0 // indirect
	github.com/parquet-go/jsonlite v1.0.0 // indirect
	github.com/peterh/liner v1.2.2 // indirect
	github.com/pierrec/lz4/v4 v4.1.21 // indirect
	github.com/rivo/uniseg v0.2.0 // indirect
	github.com/twpayne/go-geom v1.6.1 // indirect
	github.com/visualfc/funcval v0.1.4 // indirect
	github.com/visualfc/xtype v0.3.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	google.golang.org/protobuf v1.34.2 // indirect
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/cosmos72/gomacro v0.0.0-20240506194242-2ff796e3da10
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/gopherdata/gophernotes v0.7.5
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	golang.org/x/net v0.58.0 // indirect
)
