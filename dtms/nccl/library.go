package nccl

import (
	"fmt"
	"strings"

	"github.com/ebitengine/purego"

	"blutrain/formats"
)

// LibraryVariable names the environment variable that says which library to load.
const LibraryVariable = "BLUTRAIN_NCCL_LIBRARY"

var libraries = [...]string{"libnccl.so.2", "libnccl.so"}

// What nccl.h fixes.
const (
	success    = 0
	inProgress = 7
	sum        = 0
	noColor    = -1

	oldest      = 21800 // 2.18: the first with ncclCommSplit
	configMagic = 0xcafebeef
	undefined   = -1 << 31
)

// uniqueID is what all ranks of a communicator know.
type uniqueID struct{ words [16]uint64 }

// config is ncclConfig_t as of version 2.18; later versions read only what its size says is there.
type config struct {
	size           uint64
	magic, version uint32
	blocking       int32
	cgaClusterSize int32
	minCTAs        int32
	maxCTAs        int32
	netName        uintptr
	splitShare     int32
	trafficClass   int32 // since 2.25; the end of the structure's padding before
}

// newConfig asks for calls that don't wait, so that they can be aborted.
func newConfig() *config {
	return &config{size: 48, magic: configMagic, version: oldest, cgaClusterSize: undefined, minCTAs: undefined, maxCTAs: undefined, splitShare: undefined, trafficClass: undefined}
}

// dataTypes are NCCL's numbers of element types.
var dataTypes = map[formats.DType]int32{
	formats.I8: 0, formats.U8: 1, formats.Bool: 1, formats.I32: 2, formats.U32: 3, formats.I64: 4, formats.U64: 5,
	formats.F16: 6, formats.F32: 7, formats.F64: 8, formats.BF16: 9,
}

// library is the NCCL functions used here. A comm is ncclComm_t, an opaque pointer.
type library struct {
	name string

	getVersion    func(version *int32) int32
	getUniqueID   func(id *uniqueID) int32
	initRank      func(comm *uintptr, ranks int32, id uniqueID, rank int32, c *config) int32
	split         func(comm uintptr, color, key int32, child *uintptr, c *config) int32
	getAsyncError func(comm uintptr, state *int32) int32
	commFinalize  func(comm uintptr) int32
	destroy       func(comm uintptr) int32
	abort         func(comm uintptr) int32
	errorString   func(code int32) string
	lastError     func(comm uintptr) string

	allReduce     func(in, out, count uintptr, datatype, op int32, comm, stream uintptr) int32
	reduceScatter func(in, out, count uintptr, datatype, op int32, comm, stream uintptr) int32
	allGather     func(in, out, count uintptr, datatype int32, comm, stream uintptr) int32
	broadcast     func(in, out, count uintptr, datatype, root int32, comm, stream uintptr) int32
	send          func(in, count uintptr, datatype, to int32, comm, stream uintptr) int32
	recv          func(out, count uintptr, datatype, from int32, comm, stream uintptr) int32
	groupStart    func() int32
	groupEnd      func() int32
}

// load opens the given library, or the usual one.
func load(name string) (*library, error) {
	names := libraries[:]
	if name != "" {
		names = []string{name}
	}
	var handle uintptr
	var err error
	for _, n := range names {
		if handle, err = purego.Dlopen(n, purego.RTLD_NOW|purego.RTLD_LOCAL); err == nil {
			name = n
			break
		}
	}
	if handle == 0 {
		return nil, fmt.Errorf("NCCL can't be loaded (tried %s; %s names another file): %w", strings.Join(names, ", "), LibraryVariable, err)
	}
	l := &library{name: name}
	version, err := purego.Dlsym(handle, "ncclGetVersion")
	if err != nil {
		return nil, fmt.Errorf("%s is not NCCL: %w", name, err)
	}
	purego.RegisterFunc(&l.getVersion, version)
	var v int32
	if code := l.getVersion(&v); code != success {
		return nil, fmt.Errorf("%s: ncclGetVersion: error %d", name, code)
	}
	if v < oldest {
		return nil, fmt.Errorf("%s is NCCL %s, %s or later is needed", name, versionText(v), versionText(oldest))
	}
	for symbol, function := range map[string]any{
		"ncclGetUniqueId": &l.getUniqueID, "ncclCommInitRankConfig": &l.initRank, "ncclCommSplit": &l.split, "ncclCommGetAsyncError": &l.getAsyncError,
		"ncclCommFinalize": &l.commFinalize, "ncclCommDestroy": &l.destroy, "ncclCommAbort": &l.abort, "ncclGetErrorString": &l.errorString,
		"ncclGetLastError": &l.lastError, "ncclAllReduce": &l.allReduce, "ncclReduceScatter": &l.reduceScatter, "ncclAllGather": &l.allGather,
		"ncclBroadcast": &l.broadcast, "ncclSend": &l.send, "ncclRecv": &l.recv, "ncclGroupStart": &l.groupStart, "ncclGroupEnd": &l.groupEnd,
	} {
		address, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return nil, fmt.Errorf("%s lacks %s: %w", name, symbol, err)
		}
		purego.RegisterFunc(function, address)
	}
	return l, nil
}

func versionText(v int32) string { return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100) }

// check makes an error of an NCCL function's result.
func (l *library) check(function string, code int32, comm uintptr) error {
	if code == success || code == inProgress {
		return nil
	}
	text := l.errorString(code)
	if more := l.lastError(comm); more != "" {
		text += ": " + more
	}
	return fmt.Errorf("%s: %s", function, text)
}
