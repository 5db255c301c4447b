package irhtml

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/internal/upstream"
)

// browser is a session of a Chromium without a window, driven by the WebDriver protocol (W3C, https://www.w3.org/TR/webdriver2/).
type browser struct {
	t       *testing.T
	address string // of the session
}

// openBrowser starts a browser that is gone when the test is over.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	chromium := upstream.Chromium(t)
	cmd := exec.Command(upstream.ChromeDriver(t), "--port=0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	b := &browser{t: t}
	started := regexp.MustCompile(`started successfully on port (\d+)`)
	lines := bufio.NewScanner(out)
	for b.address == "" && lines.Scan() {
		if m := started.FindStringSubmatch(lines.Text()); m != nil {
			b.address = "http://127.0.0.1:" + m[1]
		}
	}
	require.NotEmpty(t, b.address, "chromedriver didn't start")
	go io.Copy(io.Discard, out)
	profile := t.TempDir()
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1700,1000", "--user-data-dir=" + profile}
	var session struct{ SessionID string }
	b.call("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"binary": chromium, "args": args},
		"goog:loggingPrefs":  map[string]any{"browser": "ALL"},
	}}}, &session)
	b.address += "/session/" + session.SessionID
	t.Cleanup(func() { b.call("DELETE", "", nil, nil) })
	return b
}

// call is one command; its value goes to result unless that is nil.
func (b *browser) call(method, path string, body, result any) {
	b.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(b.t, err)
	if method != "POST" {
		text = nil
	}
	req, err := http.NewRequest(method, b.address+path, bytes.NewReader(text))
	require.NoError(b.t, err)
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, resp.StatusCode, "%s %s: %s", method, path, answer)
	if result != nil {
		value := struct{ Value any }{result}
		require.NoError(b.t, json.Unmarshal(answer, &value), "%s", answer)
	}
}

// open shows a page and waits until its program has built it.
func (b *browser) open(page []byte) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	require.NoError(b.t, os.WriteFile(file, page, 0o644))
	b.call("POST", "/url", map[string]any{"url": "file://" + file}, nil)
	b.eventually("document.documentElement.dataset.ready", "yes")
}

// eval gives the value of an expression of the page's.
func (b *browser) eval(expression string, args ...any) (value any) {
	b.t.Helper()
	b.call("POST", "/execute/sync", map[string]any{"script": "return " + expression, "args": append([]any{}, args...)}, &value)
	return value
}

// eventually waits until an expression has a value.
func (b *browser) eventually(expression string, want any) {
	b.t.Helper()
	var got any
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = b.eval(expression); got == want {
			return
		}
	}
	require.Equal(b.t, want, got, expression)
}

// element finds the first element of a CSS selector whose text is the given one; any, for "".
func (b *browser) element(selector, text string) string {
	b.t.Helper()
	var found map[string]string
	b.call("POST", "/execute/sync", map[string]any{
		"script": "return [...document.querySelectorAll(arguments[0])].find((e) => !arguments[1] || e.textContent.trim() === arguments[1])",
		"args":   []any{selector, text},
	}, &found)
	require.NotEmpty(b.t, found, "no %s with text %q", selector, text)
	for _, id := range found {
		return id
	}
	return ""
}

// click clicks in the middle of an element.
func (b *browser) click(selector, text string) {
	b.t.Helper()
	b.call("POST", "/element/"+b.element(selector, text)+"/click", map[string]any{}, nil)
}

// Keys that aren't characters, as WebDriver writes them.
const (
	keyEnter  = "\ue007"
	keyEscape = "\ue00c"
	keyShift  = "\ue008"
	keyRight  = "\ue014"
	keyDown   = "\ue015"
	keyHome   = "\ue011"
	keySpace  = " "
)

// press presses keys one after the other, on whatever has the focus. A shift is held until the end.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	var actions []any
	for _, k := range keys {
		actions = append(actions, map[string]any{"type": "keyDown", "value": k})
		if k != keyShift {
			actions = append(actions, map[string]any{"type": "keyUp", "value": k})
		}
	}
	b.call("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
	b.call("DELETE", "/actions", nil, nil)
}

// write types a text.
func (b *browser) write(text string) {
	b.t.Helper()
	b.press(strings.Split(text, "")...)
}

// complaints lists what the browser logged: errors of the program, breaches of the page's policy.
func (b *browser) complaints() (list []string) {
	b.t.Helper()
	var entries []struct{ Level, Message string }
	b.call("POST", "/se/log", map[string]any{"type": "browser"}, &entries)
	for _, e := range entries {
		list = append(list, e.Level+": "+e.Message)
	}
	return list
}

// screenshot saves what is seen, where BLUTRAIN_SCREENSHOTS names a folder.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("BLUTRAIN_SCREENSHOTS")
	if dir == "" {
		return
	}
	var encoded string
	b.call("GET", "/screenshot", nil, &encoded)
	image, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("irhtml-%s.png", name)), image, 0o644))
}

// dark makes the person prefer dark pages, or light ones.
func (b *browser) dark(on bool) {
	b.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[on]
	b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": "Emulation.setEmulatedMedia", "params": map[string]any{
		"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}},
	}}, nil)
}
