// Package docs runs what the documentation tells its readers to run. In README.md and docs/*.md:
//
//	```sh        commands, which must succeed
//	```console   commands after "$ ", each with the output it must have; a line "..." stands for any lines
//	```blu       a model or a part of one
//
// A line "<!-- file: NAME -->" before a block makes it a file that commands may use, "<!-- not run: REASON -->" leaves it alone. All commands of a document run in one
// folder, in order, where the repository lies as its reader sees it; make only says what it would do.
package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	Line int    // of its text's first line, from 1
	Kind string // what stands after the fence: sh, console, blu, ...
	File string // the name that a comment before it gives
	Skip string // why it is not run, which a comment before it says
	Text string
}

var comment = regexp.MustCompile(`^<!-- (file|not run): (.+) -->$`)

// Blocks finds the fenced blocks of a document.
func Blocks(document string) ([]Block, error) {
	var blocks []Block
	var open *Block
	next := Block{} // what comments say of the next block
	number := 0
	for line := range strings.Lines(document) {
		number++
		text := strings.TrimRight(line, "\n")
		fence, isFence := strings.CutPrefix(text, "```")
		switch {
		case open == nil && isFence:
			open = &Block{Line: number + 1, Kind: fence, File: next.File, Skip: next.Skip}
		case open != nil && isFence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.Text += line
		}
		next = Block{}
		if m := comment.FindStringSubmatch(text); m != nil && open == nil {
			if m[1] == "file" {
				next.File = m[2]
			} else {
				next.Skip = m[2]
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block at line %d does not end", open.Line)
	}
	return blocks, nil
}

// Command is a command of a console block and the output that is shown for it.
type Command struct {
	Line         int
	Text, Output string
}

// Commands takes a console block apart.
func Commands(b Block) ([]Command, error) {
	var list []Command
	number := b.Line - 1
	for line := range strings.Lines(b.Text) {
		number++
		switch text, isCommand := strings.CutPrefix(line, "$ "); {
		case isCommand:
			list = append(list, Command{Line: number, Text: strings.TrimSpace(text)})
		case len(list) == 0:
			return nil, fmt.Errorf("line %d: output without a command", number)
		default:
			list[len(list)-1].Output += line
		}
	}
	return list, nil
}

// Shows reports whether a document's output is that of the command: the same lines, where "..." stands for any number.
func Shows(shown, output string) bool {
	pattern := ""
	for line := range strings.Lines(shown) {
		if strings.TrimSpace(line) == "..." {
			pattern += `(?:.*\n)*?`
			continue
		}
		pattern += regexp.QuoteMeta(line)
	}
	return regexp.MustCompile(`\A` + pattern + `\z`).MatchString(output)
}
