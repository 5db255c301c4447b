package filecheck

import "testing"

// FuzzCheck looks for inputs that crash or hang.
func FuzzCheck(f *testing.F) {
	for _, c := range readCases(f) {
		f.Add(c.check, c.input)
	}
	f.Fuzz(func(t *testing.T, check, input string) {
		opts := Options{Defines: []string{"#N=1", "S=a"}, AllowEmpty: true}
		err := Check(opts, File{"check", []byte(check)}, File{"input", []byte(input)})
		if err != nil && err.Error() == "" {
			t.Fatal("a failure without a report")
		}
	})
}
