//go:build deps

// Package deps pins the libraries that rooms still under construction will import.
package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/alecthomas/participle/v2"
	_ "github.com/alecthomas/participle/v2/lexer"
	_ "github.com/ebitengine/purego"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/klauspost/cpuid/v2"
	_ "github.com/mmcloughlin/avo/build"
	_ "github.com/stretchr/testify/require"
	_ "github.com/tiktoken-go/tokenizer"
	_ "github.com/vbauerster/mpb/v8"
	_ "github.com/vbauerster/mpb/v8/decor"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/cpu"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/tools/cmd/deadcode"
	_ "golang.org/x/tools/cmd/stringer"
	_ "golang.org/x/tools/txtar"
	_ "gonum.org/v1/plot"
	_ "gonum.org/v1/plot/plotter"
	_ "gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/draw"
	_ "google.golang.org/protobuf/encoding/protowire"
)
