// Package irhtml records a module after each phase and pass and writes the records as one HTML page, side by side. The
// page needs nothing but a browser: its script, its style and the text of the IR are in it. What is the same after
// several passes is stored once.
//
// The package knows the IR's printed form and nothing of any dialect, phase or pass: it is told what a column is called.
// What the page shows and how it is used is in docs/dump-html.md.
package irhtml
