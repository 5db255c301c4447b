package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a collective must not do is refused before anything runs.
func TestHostileCollectives(t *testing.T) {
	const (
		w    = "%w = exec.ref {name = \"w\", offset = 0 : i64, space = \"state\"} : () -> memref<8x4xf32>\n    "
		y    = "%y = exec.ref {name = \"y\", offset = 0 : i64, space = \"output\"} : () -> memref<8x4xf32>\n    "
		half = "%h = exec.ref {name = \"y\", offset = 0 : i64, space = \"output\"} : () -> memref<4x4xf32>\n    "
		done = "exec.wait {id = 0 : i64}"
		sum  = `exec.collective %w, %y {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<8x4xf32>, memref<8x4xf32>) -> ()` + "\n    "
	)
	for _, c := range []struct{ name, body, want string }{
		{"no group of that name", w + y + `exec.collective %w, %y {group = "tp", id = 0 : i64, op = "all_reduce"} : (memref<8x4xf32>, memref<8x4xf32>) -> ()`, `no group "tp"`},
		{"no operation of that name", w + y + `exec.collective %w, %y {group = "world", id = 0 : i64, op = "scan", ranks = 1 : i64} : (memref<8x4xf32>, memref<8x4xf32>) -> ()`, `no collective "scan"`},
		{"nowhere to put it", w + `exec.collective %w {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<8x4xf32>) -> ()`, "1 operands: expected sources and as many destinations"},
		{"a place with gaps", w + "%s = exec.ref {name = \"y\", offset = 0 : i64, space = \"output\"} : () -> memref<8x2xf32, strided<[4, 1]>>\n    %p = exec.ref {name = \"w\", offset = 0 : i64, space = \"state\"} : () -> memref<8x2xf32>\n    " +
			`exec.collective %p, %s {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<8x2xf32>, memref<8x2xf32, strided<[4, 1]>>) -> ()`, "both must be row-major"},
		{"less than there is", w + half + `exec.collective %w, %h {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<8x4xf32>, memref<4x4xf32>) -> ()`, "all_reduce from [8 4] to [4 4]"},
		{"blocks that don't fit", w + half + `exec.collective %h, %w {group = "world", id = 0 : i64, op = "all_gather", ranks = 3 : i64} : (memref<4x4xf32>, memref<8x4xf32>) -> ()`, "all_gather from [4 4] to [8 4] on 3 ranks"},
		{"no ranks", w + y + `exec.collective %w, %y {group = "world", id = 0 : i64, op = "all_to_all", ranks = 0 : i64} : (memref<8x4xf32>, memref<8x4xf32>) -> ()`, "0 ranks"},
		{"fewer than no ranks", w + y + `exec.collective %w, %y {group = "world", id = 0 : i64, op = "permute", ranks = -2 : i64, shift = 1 : i64} : (memref<8x4xf32>, memref<8x4xf32>) -> ()`, "-2 ranks"},
		{"a shift around the ring", w + y + `exec.collective %w, %y {group = "world", id = 0 : i64, op = "permute", ranks = 2 : i64, shift = 9223372036854775807 : i64} : (memref<8x4xf32>, memref<8x4xf32>) -> ()`, "a shift of 9223372036854775807 among 2 ranks"},
		{"more ranks than there are", w + y + `exec.collective %w, %y {group = "world", id = 0 : i64, op = "permute", ranks = 2 : i64} : (memref<8x4xf32>, memref<8x4xf32>) -> ()` + "\n    " + done, "permute over 2 ranks of group world, which has 1"},
		{"two types", w + "%i = exec.ref {name = \"y\", offset = 0 : i64, space = \"output\"} : () -> memref<8x4xi32>\n    " +
			`exec.collective %w, %i {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<8x4xf32>, memref<8x4xi32>) -> ()`, "its destination i32"},
		{"a place beyond its state", "%r = exec.ref {name = \"w\", offset = 16 : i64, space = \"state\"} : () -> memref<8x4xf32>\n    " + y +
			`exec.collective %r, %y {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<8x4xf32>, memref<8x4xf32>) -> ()` + "\n    " + done, "of a buffer of 32"},
		{"begun twice", w + y + sum + sum + done, "there is a collective 0 already"},
		{"never waited for", w + y + sum, "nothing waits for collective 0"},
		{"waited for before it begins", w + y + done + "\n    " + sum + done, "no collective 0 is under way"},
		{"waited for twice", w + y + sum + done + "\n    " + done, "no collective 0 is under way"},
		{"written while it is sent", w + y + sum + "exec.launch %w {kernel = @k} : (memref<8x4xf32>) -> ()\n    " + done, "it writes what collective 0, which is under way, reads: state w"},
		{"written while it comes", w + y + sum + "exec.launch %y {kernel = @k} : (memref<8x4xf32>) -> ()\n    " + done, "it writes what collective 0, which is under way, writes: output y"},
		{"read before it is there", w + y + "%a = exec.ref {offset = 0 : i64, space = \"arena\"} : () -> memref<8x4xf32>\n    " + sum + "exec.copy %y, %a : (memref<8x4xf32>, memref<8x4xf32>) -> ()\n    " + done, "it reads what collective 0, which is under way, writes: output y"},
		{"two at once into one place", w + y + sum + `exec.collective %w, %y {group = "world", id = 1 : i64, op = "all_reduce"} : (memref<8x4xf32>, memref<8x4xf32>) -> ()` + "\n    " + done + "\n    exec.wait {id = 1 : i64}", "it writes what collective 0, which is under way, writes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(t, collectiveProgram(c.body), 1)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func collectiveProgram(body string) string {
	return `builtin.module {
  host.kernel @k attributes {grid = array<i64>, outs = 1 : i64, scratch = 0 : i64, steps = array<i64>} (%x: memref<8x4xf32>) {
    host.end
  }
  exec.func @f attributes {arena = 128 : i64} {
    ` + body + `
    exec.end
  }
}
`
}

// On the only rank there is, a collective is a copy, and in place nothing at all.
func TestCollectivesAlone(t *testing.T) {
	y, err := callF(t, collectiveProgram(`%x = exec.ref {name = "x", offset = 0 : i64, space = "input"} : () -> memref<8x4xf32>
    %y = exec.ref {name = "y", offset = 0 : i64, space = "output"} : () -> memref<1x8x4xf32>
    exec.collective %x, %y {group = "cp", id = 7 : i64, op = "all_gather", ranks = 1 : i64} : (memref<8x4xf32>, memref<1x8x4xf32>) -> ()
    exec.wait {id = 7 : i64}
    exec.collective %y, %y {group = "dp", id = 8 : i64, op = "all_reduce"} : (memref<1x8x4xf32>, memref<1x8x4xf32>) -> ()
    exec.wait {id = 8 : i64}`), 1)
	require.NoError(t, err)
	for i, v := range y {
		require.Equal(t, float32(i), v)
	}
}
