// Command job takes several ranks through everything they do and measures it: see test/cluster/dryrun.sh. It starts bluc and
// blurun as a person would and reads what they print.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// options are the command line.
type options struct {
	Target     string   `enum:"cpu,cuda" default:"cpu" help:"Where the ranks run: cpu, or cuda with a GPU for each."`
	Arch       string   `help:"bluc's --arch. Default: bluc's own."`
	Ptxas      string   `help:"bluc's --ptxas."`
	Ranks      []int    `default:"1,2,4" help:"Numbers of ranks (${default}); the largest is also that of context parallelism."`
	Precisions []string `default:"fp32" help:"bluc's --precision (${default})."`
	Model      string   `enum:"tiny,124m" default:"tiny" help:"GPT-2's size: tiny or 124m."`
	Lengths    []int    `help:"Lengths of sequences for context parallelism. Default: 64,128 for tiny; 8192,32768,131072 for 124m."`
	Sizes      []int    `help:"MiB that ranks exchange. Default: 1,4 for tiny; 1,25,100,512 for 124m."`
	Steps      int      `default:"6" help:"Steps of each measurement (${default}); the first half warms up."`
	Data       string   `help:"Token file. Default: one made of this repository's texts."`
	Only       []string `help:"Stages to run: collectives, data, context, checkpoints, resume, death. Default: all."`
	Models     string   `default:"examples" help:"Folder with gpt2.blu."`
	Bin        string   `default:"bin" help:"Folder with bluc and blurun."`
	Out        string   `default:"build/cluster" help:"Folder for artifacts, logs and results.jsonl."`
}

// sizes of the models: what bluc's --set gets, and the default lengths.
var sizes = map[string]struct {
	set     string
	b, s    int
	lengths []int
	mib     []int
}{
	"tiny": {"L=2,H=4,C=32,WARMUP=2,STEPS=40,LR=1e-2", 2, 32, []int{64, 128}, []int{1, 4}},
	"124m": {"L=12,H=12,C=768,WARMUP=20,STEPS=400", 16, 1024, []int{8192, 32768, 131072}, []int{1, 25, 100, 512}},
}

// stage is a part of the job that --only can name.
type stage struct {
	name string
	run  func(*job) error
}

// stages in their order.
var stages = []stage{
	{"collectives", (*job).collectives},
	{"data", (*job).dataParallel},
	{"context", (*job).contextParallel},
	{"checkpoints", (*job).checkpoints},
	{"resume", (*job).resume},
	{"death", (*job).death},
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("job"), kong.Description("Take several ranks through everything they do, and measure it."))
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "job: error:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	j, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	for _, s := range stages {
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.name) {
			continue
		}
		if err := s.run(j); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := j.close(); err != nil {
		return err
	}
	return j.table(os.Stdout)
}

// prepare makes the folder and the data.
func prepare(ctx context.Context, o options) (*job, error) {
	size := sizes[o.Model]
	if len(o.Lengths) == 0 {
		o.Lengths = size.lengths
	}
	if len(o.Sizes) == 0 {
		o.Sizes = size.mib
	}
	if slices.Min(o.Ranks) < 1 || slices.Max(o.Ranks) < 2 || o.Steps < 2 {
		return nil, fmt.Errorf("--ranks needs a number above 1, --steps 2 or more")
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(stages, func(s stage) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no stage %q", name)
		}
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return nil, err
	}
	results, err := os.Create(filepath.Join(o.Out, "results.jsonl"))
	if err != nil {
		return nil, err
	}
	j := &job{options: o, ctx: ctx, results: results, most: slices.Max(o.Ranks)}
	if o.Data != "" {
		return j, nil
	}
	j.Data = filepath.Join(o.Out, "text.bin")
	tokenizer := "byte"
	if o.Model == "124m" {
		tokenizer = "gpt2"
	}
	texts, err := j.texts()
	if err != nil {
		return nil, err
	}
	_, err = j.program("blurun", append([]string{"data", "prepare", "-o", j.Data, "--tokenizer", tokenizer}, texts...)...)
	return j, err
}

// texts is what there is to learn from: this repository's documents, and for the large model, whose windows are long, its sources too.
func (j *job) texts() (names []string, err error) {
	if j.Model == "tiny" {
		return filepath.Glob("docs/*.md")
	}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "build" || name == "bin" || len(name) > 1 && name[0] == '.'):
			return filepath.SkipDir
		case d.Type().IsRegular() && (strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".md")):
			names = append(names, path)
		}
		return nil
	})
	return names, err
}

// vocabulary is the model's argument V.
func (j *job) vocabulary() int {
	if j.Model == "tiny" {
		return 256
	}
	return 50257
}

// compiled is a variant of the model.
type compiled struct {
	mesh      string // "": one rank
	zero      bool
	context   string
	precision string
	b, s      int
}

// compile gives the variant's artifact.
func (j *job) compile(v compiled) (string, error) {
	name := strings.NewReplacer("=", "", ",", "-").Replace(fmt.Sprintf("%s-%s-%s-b%d-s%d", j.Model, v.precision, v.mesh, v.b, v.s))
	args := []string{"compile", filepath.Join(j.Models, "gpt2.blu"), "--target", j.Target, "--precision", v.precision,
		"--set", fmt.Sprintf("%s,V=%d,T=%d,B=%d,S=%d", sizes[j.Model].set, j.vocabulary(), v.s, v.b, v.s)}
	if j.Arch != "" {
		args = append(args, "--arch", j.Arch)
	}
	if j.Ptxas != "" {
		args = append(args, "--ptxas", j.Ptxas)
	}
	if v.mesh != "" {
		args = append(args, "--mesh", v.mesh)
	}
	if v.zero {
		args, name = append(args, "--zero", "1"), name+"-zero"
	}
	if v.context != "" {
		args, name = append(args, "--context", v.context), name+"-"+v.context
	}
	file := filepath.Join(j.Out, name+".blx")
	_, err := j.program("bluc", append(args, "-o", file)...)
	return file, err
}
