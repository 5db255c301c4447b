package mpi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebitengine/purego"
)

// LibraryVariable names the environment variable that says which library to load.
const LibraryVariable = "BLUTRAIN_MPI_LIBRARY"

// libraries are tried in this order: MPICH as Debian and Fedora install it, and what has its ABI.
var libraries = [...]string{"libmpich.so.12", "libmpi.so.12", "libmpich.so"}

// What MPICH's ABI fixes: handles are integers, a status is five integers.
const (
	commWorld      = 0x44000000
	typeByte       = 0x4c00010d
	errorsReturn   = 0x54000001
	anySource      = -2
	threadFunneled = 1
	success        = 0

	versionSize = 8192
	messageSize = 512
)

type status struct {
	countLow, countHighAndCancelled, source, tag, code int32
}

// library is the MPI functions used here.
type library struct {
	name string

	getLibraryVersion func(text *byte, length *int32) int32
	initialized       func(flag *int32) int32
	initThread        func(argc, argv uintptr, required int32, provided *int32) int32
	setErrhandler     func(comm, handler int32) int32
	commRank          func(comm int32, rank *int32) int32
	commSize          func(comm int32, size *int32) int32
	isend             func(buffer *byte, count, datatype, to, tag, comm int32, request *int32) int32
	test              func(request, flag *int32, s *status) int32
	iprobe            func(source, tag, comm int32, flag *int32, s *status) int32
	getCount          func(s *status, datatype int32, count *int32) int32
	recv              func(buffer *byte, count, datatype, source, tag, comm int32, s *status) int32
	errorString       func(code int32, text *byte, length *int32) int32
	finalize          func() int32
}

// load opens a library, the given one or the first that is there, and makes sure that it has MPICH's ABI before anything
// relies on it.
func load(name string) (*library, error) {
	names := libraries[:]
	if name != "" {
		names = []string{name}
	}
	var handle uintptr
	var err error
	for _, n := range names {
		if handle, err = purego.Dlopen(n, purego.RTLD_NOW|purego.RTLD_GLOBAL); err == nil {
			name = n
			break
		}
	}
	if handle == 0 {
		return nil, fmt.Errorf("MPICH can't be loaded (tried %s; Debian's package is libmpich12; %s names another file): %w", strings.Join(names, ", "), LibraryVariable, err)
	}
	l := &library{name: name}
	for symbol, function := range map[string]any{
		"MPI_Get_library_version": &l.getLibraryVersion, "MPI_Initialized": &l.initialized, "MPI_Init_thread": &l.initThread,
		"MPI_Comm_set_errhandler": &l.setErrhandler, "MPI_Comm_rank": &l.commRank, "MPI_Comm_size": &l.commSize,
		"MPI_Isend": &l.isend, "MPI_Test": &l.test, "MPI_Iprobe": &l.iprobe, "MPI_Get_count": &l.getCount, "MPI_Recv": &l.recv,
		"MPI_Error_string": &l.errorString, "MPI_Finalize": &l.finalize,
	} {
		address, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return nil, fmt.Errorf("%s is not an MPI library: %w", name, err)
		}
		purego.RegisterFunc(function, address)
	}
	return l, l.checkABI()
}

// checkABI reads the library's description, which needs no MPI_Init and no constant of the ABI.
func (l *library) checkABI() error {
	var text [versionSize]byte
	var length int32
	if code := l.getLibraryVersion(&text[0], &length); code != success || length < 0 || length > versionSize {
		return fmt.Errorf("%s does not say which MPI it is", l.name)
	}
	version := string(text[:length])
	for _, family := range []string{"MPICH", "MVAPICH", "Intel(R) MPI"} {
		if strings.Contains(version, family) {
			return nil
		}
	}
	version, _, _ = strings.Cut(version, "\n")
	return fmt.Errorf("%s is %q: MPICH or a library with its ABI is needed", l.name, strings.TrimRight(version, "\x00 "))
}

// check makes an error of an MPI function's result.
func (l *library) check(function string, code int32) error {
	if code == success {
		return nil
	}
	var text [messageSize]byte
	var length int32
	if l.errorString(code, &text[0], &length) != success || length < 0 || length > messageSize {
		return fmt.Errorf("%s: error %d", function, code)
	}
	return fmt.Errorf("%s: %s", function, text[:length])
}

// begin starts MPI on the calling thread.
func (l *library) begin() (rank, size int32, err error) {
	var flag, provided int32
	if err := l.check("MPI_Initialized", l.initialized(&flag)); err != nil {
		return 0, 0, err
	}
	if flag != 0 {
		return 0, 0, errors.New("MPI has been started in this process before, which it allows once")
	}
	if err := l.check("MPI_Init_thread", l.initThread(0, 0, threadFunneled, &provided)); err != nil {
		return 0, 0, err
	}
	if provided < threadFunneled {
		return 0, 0, fmt.Errorf("%s was built without threads, MPI_THREAD_FUNNELED is needed", l.name)
	}
	err = errors.Join(
		l.check("MPI_Comm_set_errhandler", l.setErrhandler(commWorld, errorsReturn)),
		l.check("MPI_Comm_rank", l.commRank(commWorld, &rank)),
		l.check("MPI_Comm_size", l.commSize(commWorld, &size)))
	return rank, size, err
}
