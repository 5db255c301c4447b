package builtin

import (
	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
)

// maxWindow bounds the places of a window: each is a slice of the input.
const maxWindow = 1024

// window is how a window of h by w places moves over an image.
type window struct {
	h, w, stride, padding int64
}

// outputs is the size of the result along a dimension of size n.
func (c *Call) outputs(n shape.Int, size, stride, padding int64) (shape.Int, bool) {
	padded, ok := shape.AddInt(n.N, 2*padding)
	if !ok || padded < size {
		c.fail("x", "the window of %d is larger than %v with a padding of %d", size, n, padding)
		return n, false
	}
	out := (padded-size)/stride + 1
	if out == n.N {
		return n, true
	}
	return shape.Lit(out), true
}

// positions checks the arguments that say how a window moves.
func (c *Call) positions(w window) bool {
	const far = 1 << 30
	switch {
	case w.stride < 1 || w.stride > far:
		c.fail("stride", "stride must be at least 1, this is %d", w.stride)
	case w.padding < 0 || w.padding > far:
		c.fail("padding", "padding must not be negative, this is %d", w.padding)
	case w.h < 1 || w.w < 1 || w.h > maxWindow || w.w > maxWindow || w.h*w.w > maxWindow:
		c.fail("", "a window has from 1 to %d places, this has %d x %d", maxWindow, w.h, w.w)
	default:
		return true
	}
	return false
}

func (c *Call) convWindow() window {
	w := c.typ("w")
	return window{w.Dims[2].N, w.Dims[3].N, c.int("stride").N, c.int("padding").N}
}

func inferConv2d(c *Call) shape.Type {
	x, w := c.typ("x"), c.typ("w")
	if !c.rank("x", 4, "[N, C, H, W]") || !c.rank("w", 4, "[O, C, KH, KW]") || !c.sameDType("x", "w", "b") {
		return shape.Type{}
	}
	if x.Dims[1].N != w.Dims[1].N {
		return c.clash("x", []string{"w"}, "x has %v, w expects %v", shape.Count{Of: x.Dims[1], Noun: "channels"}, w.Dims[1])
	}
	if c.has("b") {
		if !c.rank("b", 1, "[O]") {
			return shape.Type{}
		}
		if b := c.typ("b").Dims[0]; b.N != w.Dims[0].N {
			return c.clash("b", []string{"w"}, "b has %v, w gives %v", shape.Count{Of: b, Noun: "channels"}, w.Dims[0])
		}
	}
	return c.moved(w.Dims[0], c.convWindow())
}

// moved is the type of x after a window moved over its last two dimensions, with the given channels.
func (c *Call) moved(channels shape.Int, win window) shape.Type {
	x := c.typ("x")
	if !c.positions(win) {
		return shape.Type{}
	}
	h, ok := c.outputs(x.Dims[2], win.h, win.stride, win.padding)
	if !ok {
		return shape.Type{}
	}
	w, ok := c.outputs(x.Dims[3], win.w, win.stride, win.padding)
	if !ok {
		return shape.Type{}
	}
	return x.WithDims(x.Dims[0], channels, h, w)
}

func (c *Call) poolWindow() window {
	size := c.int("size").N
	stride := size
	if c.has("stride") {
		stride = c.int("stride").N
	}
	return window{size, size, stride, 0}
}

func inferPool(c *Call) shape.Type {
	if !c.rank("x", 4, "[N, C, H, W]") {
		return shape.Type{}
	}
	return c.moved(c.typ("x").Dims[1], c.poolWindow())
}

// places stacks what each place of a window sees: x [N, C, H, W] gives [N, C, places, outputs].
func (e *Emitter) places(x *ir.Value, win window, outH, outW int64) *ir.Value {
	if win.padding > 0 {
		p := e.Ctx.I64s(0, 0, win.padding, win.padding)
		x = e.one(blu.Pad, x, e.attr("low", p), e.attr("high", p), e.attr("value", e.Ctx.FloatAttr(0, e.Ctx.F64())))
	}
	n, channels := x.Shape()[0], x.Shape()[1]
	var seen []*ir.Value
	for i := range win.h {
		for j := range win.w {
			s := e.one(blu.Slice, x,
				e.attr("starts", e.Ctx.I64s(0, 0, i, j)),
				e.attr("limits", e.Ctx.I64s(n, channels, i+(outH-1)*win.stride+1, j+(outW-1)*win.stride+1)),
				e.attr("steps", e.Ctx.I64s(1, 1, win.stride, win.stride)))
			seen = append(seen, e.reshape(s, []int64{n, channels, 1, outH * outW}))
		}
	}
	return e.Create(blu.Concat, seen, e.attr("axis", e.Ctx.Int64(2))).Result(0)
}

// emitConv2d is one matrix product: the weights with the places of the window (im2col).
func emitConv2d(e *Emitter) []*ir.Value {
	out, w := e.Call.Result.Sizes(), e.val("w")
	win := e.Call.convWindow()
	depth := w.Shape()[1] * win.h * win.w
	seen := e.reshape(e.places(e.val("x"), win, out[2], out[3]), []int64{out[0], depth, out[2] * out[3]})
	y := e.dot(seen, e.reshape(w, []int64{out[1], depth}), nil, nil, []int64{1}, []int64{1})
	y = e.reshape(e.transpose(y, []int64{0, 2, 1}), out)
	if b := e.val("b"); b != nil {
		y = e.one(blu.Add, y, e.broadcast(b, out, []int64{1}))
	}
	return []*ir.Value{y}
}

func (e *Emitter) pooled(def *ir.OpDef) (*ir.Value, window) {
	out, win := e.Call.Result.Sizes(), e.Call.poolWindow()
	seen := e.places(e.val("x"), win, out[2], out[3])
	return e.reshape(e.one(def, seen, e.axesAttr("axes", []int{2})), out), win
}

func emitMaxPool(e *Emitter) []*ir.Value {
	y, _ := e.pooled(blu.ReduceMax)
	return []*ir.Value{y}
}

func emitAvgPool(e *Emitter) []*ir.Value {
	sum, win := e.pooled(blu.ReduceSum)
	return e.op(blu.Div, sum, e.splat(float64(win.h*win.w), sum.Type()))
}
