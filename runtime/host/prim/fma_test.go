package prim

import (
	"math"
	"math/big"
)

// fmaExact is x*y + z rounded once, by way of exact arithmetic.
func fmaExact(x, y, z float32) float32 {
	fx, fy, fz := float64(x), float64(y), float64(z)
	if v := fx*fy + fz; math.IsNaN(v) || math.IsInf(fx*fy, 0) || math.IsInf(fz, 0) || v == 0 {
		return float32(v) // exact or special: a sum of exact products is zero only if it is exactly
	}
	var p, s big.Float
	p.SetPrec(800).Mul(big.NewFloat(fx), big.NewFloat(fy))
	s.SetPrec(800).Add(&p, big.NewFloat(fz))
	r, _ := s.Float32()
	return r
}
