// A stand-in for NCCL and the GPUs of a node, whose ranks are threads of one process, with what decides whether they get stuck: work on a
// stream is done in order; a collective is done when all ranks of its communicator have it first on their streams; to destroy or to abort a
// communicator waits for its work and then for the other ranks to do so too, as NCCL 2.28 does (its init.cc and proxy.cc). Nothing is moved.
// What waits longer than PATIENCE seconds gives up, and is counted.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { success = 0, internal = 3, invalid = 4, progress = 7, MOST = 16, PATIENCE = 8 };

typedef struct { uint64_t words[16]; } ncclUniqueId;
typedef struct group { uint64_t id; int ranks; struct comm *members[MOST]; struct group *next; } group;
typedef struct comm { group *group; int rank, device, ordinal, calls, looks, aborted, gone; } comm;
typedef struct work { comm *comm; int call; uint64_t what; struct work *next; } work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static group *groups;
static uint64_t ids;
static work *streams[MOST];           // by device
static int communicators[MOST];       // of a device so far
static char logs[MOST][1 << 18];      // by device
static int lengths[MOST], gaveUp, mixed;
static __thread int device, depth;    // of the thread
static __thread comm *inGroup;
static __thread uint64_t together;

void fakeBind(int d) { device = d; }
int fakeStuck(void) { return gaveUp; }
int fakeMixed(void) { return mixed; }
const char *fakeLog(int d) { return logs[d]; }

static void say(int d, const char *what, comm *c, uint64_t n) {
	if (lengths[d] < (int)sizeof logs[d] - 64) lengths[d] += snprintf(logs[d] + lengths[d], 64, "%s %d %llx\n", what, c->ordinal, (unsigned long long)n);
}

// work_done takes what is done off the streams, as long as there is something.
static void work_done(void) {
	for (int again = 1; again;) {
		again = 0;
		for (int d = 0; d < MOST; d++) {
			work *w = streams[d];
			if (!w) continue;
			comm *own = w->comm;
			group *g = own->group;
			int ready = 1;
			for (int r = 0; r < g->ranks && !own->aborted; r++) {
				work *o = g->members[r] ? streams[g->members[r]->device] : NULL;
				if (!o || o->comm != g->members[r] || o->call != w->call || g->members[r]->aborted) ready = 0;
				else if (o->what != w->what) mixed = 1;
			}
			if (!ready) continue;
			again = 1;
			for (int r = 0; r < g->ranks; r++) {
				comm *c = g->members[r];
				if (own->aborted ? c != own : !c) continue;
				work *o = streams[c->device];
				streams[c->device] = o->next;
				free(o);
			}
		}
	}
	pthread_cond_broadcast(&changed);
}

// rest waits until something has changed; it is false when that takes too long.
static int rest(struct timespec *until) {
	if (pthread_cond_timedwait(&changed, &lock, until) == 0) return 1;
	gaveUp++;
	return 0;
}

static struct timespec patience(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += PATIENCE;
	return t;
}

int fakeDone(int d) {
	pthread_mutex_lock(&lock);
	int done = !streams[d];
	pthread_mutex_unlock(&lock);
	return done;
}

// fakeDie ends a device's process: nobody waits for it to take part in an end.
void fakeDie(int d) {
	pthread_mutex_lock(&lock);
	for (group *g = groups; g; g = g->next)
		for (int r = 0; r < g->ranks; r++)
			if (g->members[r] && g->members[r]->device == d) g->members[r]->gone = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

int ncclGetVersion(int *v) { *v = 22809; return success; }
const char *ncclGetErrorString(int code) { return code == internal ? "it waits for ever" : "invalid argument"; }
const char *ncclGetLastError(comm *c) { return ""; }

int ncclGetUniqueId(ncclUniqueId *id) {
	pthread_mutex_lock(&lock);
	memset(id, 0, sizeof *id);
	id->words[0] = ++ids;
	pthread_mutex_unlock(&lock);
	return success;
}

int ncclCommInitRankConfig(comm **out, int ranks, ncclUniqueId id, int rank, void *config) {
	pthread_mutex_lock(&lock);
	group *g = groups;
	while (g && g->id != id.words[0]) g = g->next;
	if (!g) {
		g = calloc(1, sizeof *g);
		g->id = id.words[0], g->ranks = ranks, g->next = groups, groups = g;
	}
	comm *c = calloc(1, sizeof *c);
	c->group = g, c->rank = rank, c->device = device, c->ordinal = communicators[device]++, c->looks = 1;
	g->members[rank] = c;
	say(device, "begin", c, ranks);
	*out = c;
	pthread_mutex_unlock(&lock);
	return progress;
}

int ncclCommGetAsyncError(comm *c, int *state) {
	pthread_mutex_lock(&lock);
	int all = 1; // ranks start together
	for (int r = 0; r < c->group->ranks; r++) all &= c->group->members[r] != NULL;
	*state = !all || c->looks > 0 ? progress : success;
	if (all && c->looks > 0) c->looks--;
	pthread_mutex_unlock(&lock);
	return success;
}

static int uses(comm *c) {
	for (work *w = streams[c->device]; w; w = w->next)
		if (w->comm == c) return 1;
	return 0;
}

static int others(comm *c) {
	for (int r = 0; r < c->group->ranks; r++)
		if (c->group->members[r] && !c->group->members[r]->gone) return 1;
	return 0;
}

// end waits for the communicator's work, and then for the other ranks.
static int end(comm *c) {
	struct timespec until = patience();
	work_done();
	while (uses(c)) if (!rest(&until)) return internal;
	c->gone = 1;
	pthread_cond_broadcast(&changed);
	while (others(c)) if (!rest(&until)) return internal;
	return success;
}

int ncclCommFinalize(comm *c) { c->looks = 1; return progress; }

int ncclCommDestroy(comm *c) {
	pthread_mutex_lock(&lock);
	say(c->device, "destroy", c, 0);
	int code = end(c);
	pthread_mutex_unlock(&lock);
	return code;
}

int ncclCommAbort(comm *c) {
	pthread_mutex_lock(&lock);
	c->aborted = 1;
	int code = end(c);
	pthread_mutex_unlock(&lock);
	return code;
}

static void put(comm *c, uint64_t what) {
	pthread_mutex_lock(&lock);
	work *w = calloc(1, sizeof *w), **at = &streams[c->device];
	w->comm = c, w->call = c->calls++, w->what = what;
	while (*at) at = &(*at)->next;
	*at = w;
	c->looks = 1;
	say(c->device, "call", c, what);
	work_done();
	pthread_mutex_unlock(&lock);
}

static int call(comm *c, int op, uint64_t count, int type) {
	if (!c || c->aborted || c->device != device) return invalid;
	together = together * 1000003 + op * 1000 + type + count * 16777259;
	inGroup = c;
	if (depth) return success;
	put(c, together);
	together = 0;
	return progress;
}

int ncclAllReduce(void *in, void *out, size_t n, int type, int op, comm *c, uintptr_t stream) { return call(c, 1, n, type); }
int ncclReduceScatter(void *in, void *out, size_t n, int type, int op, comm *c, uintptr_t stream) { return call(c, 2, n, type); }
int ncclAllGather(void *in, void *out, size_t n, int type, comm *c, uintptr_t stream) { return call(c, 3, n, type); }
int ncclBroadcast(void *in, void *out, size_t n, int type, int root, comm *c, uintptr_t stream) { return call(c, 4, n, type); }
int ncclSend(void *in, size_t n, int type, int peer, comm *c, uintptr_t stream) { return call(c, 5, n, type); }
int ncclRecv(void *out, size_t n, int type, int peer, comm *c, uintptr_t stream) { return call(c, 6, n, type); }
int ncclCommSplit(comm *c, int color, int key, comm **out, void *config) { return invalid; }
int ncclGroupStart(void) { depth++; return success; }

int ncclGroupEnd(void) {
	if (--depth || !inGroup) return success;
	comm *c = inGroup;
	inGroup = NULL;
	put(c, together);
	together = 0;
	return progress;
}
