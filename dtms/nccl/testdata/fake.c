// A stand-in for NCCL that checks how it is called: every rank is alone on the machine's memory, so that a collective
// copies its input to the place of this rank in the output. It says "in progress" once after each call, as NCCL does on
// communicators that don't block.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char internal[128]; } ncclUniqueId;
typedef struct {
	size_t size;
	unsigned int magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
	int splitShare, trafficClass;
} ncclConfig;
typedef struct comm { int ranks, rank, busy, aborted, broken, held; } comm;

enum { success = 0, invalid = 4, progress = 7, remote = 6 };

static int sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
static __thread int groups; // groups of calls are the thread's, as in NCCL

int ncclGetVersion(int *v) { *v = 22304; return success; }
const char *ncclGetErrorString(int code) { return code == remote ? "remote process exited" : "invalid argument"; }
const char *ncclGetLastError(comm *c) { return c && c->broken ? "the cable was cut" : ""; }

int ncclGetUniqueId(ncclUniqueId *id) {
	for (int i = 0; i < 128; i++) id->internal[i] = (char)(3 * i + 1);
	return success;
}

int ncclCommInitRankConfig(comm **out, int ranks, ncclUniqueId id, int rank, ncclConfig *config) {
	for (int i = 0; i < 128; i++)
		if (id.internal[i] != (char)(3 * i + 1)) return invalid;
	if (config->size != 48 || config->magic != 0xcafebeef || config->version != 21800 || config->blocking != 0 || config->netName) return invalid;
	if (config->splitShare != INT32_MIN || config->trafficClass != INT32_MIN || rank < 0 || rank >= ranks) return invalid;
	comm *c = calloc(1, sizeof *c);
	c->ranks = ranks;
	c->rank = rank;
	c->busy = 3;
	*out = c;
	return progress;
}

int ncclCommSplit(comm *c, int color, int key, comm **out, ncclConfig *config) {
	if (color < -1 || config->size != 48) return invalid;
	*out = NULL;
	c->busy = 1;
	if (color == -1) return progress;
	comm *child = calloc(1, sizeof *child);
	child->ranks = 1; // the tests split into single ranks
	child->busy = 2;
	*out = child;
	return progress;
}

int ncclCommGetAsyncError(comm *c, int *state) {
	*state = c->broken ? remote : c->busy > 0 ? progress : success;
	if (c->busy > 0) c->busy--;
	return success;
}

int ncclCommFinalize(comm *c) {
	if (c->held) return invalid;
	c->busy = 1;
	return progress;
}
int ncclCommDestroy(comm *c) { free(c); return success; }
int ncclCommAbort(comm *c) { c->aborted = 1; return success; }

static int begin(comm *c, int type, uintptr_t stream) {
	if (!c || c->busy || c->aborted || type < 0 || type > 9 || stream != 77) return invalid;
	if (!groups) c->busy = 1;
	return success;
}

int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, comm *c, uintptr_t stream) {
	if (op != 0 || begin(c, type, stream)) return invalid;
	if (count == 13 && c->rank == 1) c->broken = 1; // how a test asks for a failure
	if (count == 14 && c->rank == 1) c->held = 1;   // and for one at the end
	memmove(out, in, count * sizes[type]);
	return progress;
}

int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, comm *c, uintptr_t stream) {
	if (op != 0 || begin(c, type, stream)) return invalid;
	memmove(out, (const char *)in + c->rank * count * sizes[type], count * sizes[type]);
	return progress;
}

int ncclAllGather(const void *in, void *out, size_t count, int type, comm *c, uintptr_t stream) {
	if (begin(c, type, stream)) return invalid;
	memmove((char *)out + c->rank * count * sizes[type], in, count * sizes[type]);
	return progress;
}

int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, comm *c, uintptr_t stream) {
	if (in != out || root < 0 || root >= c->ranks || begin(c, type, stream)) return invalid;
	return progress;
}

static __thread const void *sent;

int ncclSend(const void *in, size_t count, int type, int peer, comm *c, uintptr_t stream) {
	if (peer < 0 || peer >= c->ranks || begin(c, type, stream)) return invalid;
	if (peer == c->rank) sent = in;
	return success;
}

int ncclRecv(void *out, size_t count, int type, int peer, comm *c, uintptr_t stream) {
	if (peer < 0 || peer >= c->ranks || begin(c, type, stream)) return invalid;
	if (peer == c->rank && groups) memmove(out, sent, count * sizes[type]);
	return success;
}

int ncclGroupStart(void) { groups++; return success; }
int ncclGroupEnd(void) { return groups-- > 0 ? success : invalid; }
