/* A stand-in for libnccl: the same symbols, data really moved and reduced between processes through shared memory.
 *
 * For tests of omb-py without a GPU.  Work is enqueued on omb-py's simulated device where that has attached itself
 * (omb_py_attach_device), else done at once.  Sequence and matching happen when work runs, not when it is enqueued, so
 * that captured work can be launched many times.
 *
 * STANDIN_VERSION=22005   the version that is reported
 * STANDIN_FAIL=KIND:N[@RANK]   N counts calls (enqueue) or executions (async, wrong, hang, slow) from 0
 *   init     ncclCommInitRank fails          enqueue  the call fails
 *   async    an asynchronous error: nothing moves any more until ncclCommAbort
 *   wrong    a byte of the result is inverted   hang  the rank does not come
 *   stall    the call never returns
 *   slow     it comes N ms late, every time
 *   put      a byte of every write into memory of others is inverted where N is not 0
 *   register ncclCommRegister and ncclCommWindowRegister fail
 *
 * STANDIN_FACTOR=F  what inputs of avg and of a reduction with a factor are multiplied by besides
 *
 * STANDIN_PEERS=N   ncclCommInitRankConfig refuses a configuration whose maxP2pPeers is not N
 *
 * STANDIN_NO_WINDOW=1   ncclCommWindowRegister answers yes and makes no window
 *
 * STANDIN_NO_STATS=1   ncclCommMemStats refuses, as RCCL does without its manager of memory
 *
 * Captured work belongs to its graph: ncclCommDestroy ends the process while there is any (NCCL would wait for good),
 * and ncclCommAbort waits until there is none.
 *
 * What came with a version is refused by an older one.  With NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=TUNING and
 * NCCL_DEBUG_FILE rank 0 writes NCCL's line of each call: algorithm (the first that is admitted) and protocol as
 * NCCL_ALGO, NCCL_PROTO or the call's configuration say, channels as the communicator's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "numbers.h"
#ifdef ONECCL
#include "oneccl.h"
#else
#define ID_BYTES 128
#define USUAL_VERSION 22803
#endif

typedef int ncclResult_t;
typedef struct { char internal[ID_BYTES]; } ncclUniqueId;
enum { OK = 0, UNHANDLED = 1, SYSTEM = 2, INTERNAL = 3, ARGUMENT = 4, USAGE = 5, REMOTE = 6 };

#define MOST_RANKS 16
#define MOST_MADE 16
#define SLOT (64 << 10)
#define MAIL (16 << 10)

typedef struct { atomic_int full; int length; char data[MAIL]; } Mail;
typedef struct {
  atomic_int arrived, turn, joined, aborted;
  atomic_int signals[MOST_RANKS][MOST_RANKS]; /* [from][to] */
  char slot[MOST_RANKS][SLOT];
  Mail mail[MOST_RANKS][MOST_RANKS]; /* [from][to] */
} Shared;
typedef struct {
  Shared* shared;
  int size, rank;
  atomic_int error, aborted, captured, freed;
  long executed;
  int min_ctas, max_ctas, policy, registered;
  int awaited[MOST_RANKS]; /* signals of each rank that a wait has taken */
  char name[81]; /* of what its ranks share */
  long shrunk, grown; /* communicators that came from it */
  int growing; /* an id for a grow is still unused */
  unsigned algorithms; /* by NCCL_ALGO; 0: its own choice */
  char protocol[16];
  struct { int op, dtype; double factor; } made[MOST_MADE]; /* reductions of its own */
} Comm;

enum Kind { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, REDUCESCATTER, ALLTOALL, GATHER, SCATTER, SEND, RECV, PUT, SIGNAL, WAIT };
typedef struct { enum Kind kind; const char* in; char* out; size_t count; int dtype, op, root; size_t done; double factor; int parts; } Op;
/* factor: inputs are multiplied by it (0: not); parts: sums are divided by it (0: not) */
typedef struct { Comm* comm; int count; Op ops[]; } Work;

static char last_error[256] = "";
static long calls = 0;
static int (*launch_host)(int64_t, void*, void*) = NULL;
static int (*retain)(int64_t, void*, void*) = NULL;

void omb_py_attach_device(void* launch, void* keep) {
  launch_host = (int (*)(int64_t, void*, void*))launch;
  retain = (int (*)(int64_t, void*, void*))keep;
}

static int wanted(const char* kind, long number, int rank) {
  const char* text = getenv("STANDIN_FAIL");
  if (!text || strncmp(text, kind, strlen(kind)) || text[strlen(kind)] != ':') return 0;
  const char* at = strchr(text, '@');
  if (at && atoi(at + 1) != rank) return 0;
  long n = atol(text + strlen(kind) + 1);
  return number < 0 ? (int)n : n == number;
}

static ncclResult_t fail(ncclResult_t code, const char* text) {
  snprintf(last_error, sizeof last_error, "%s", text);
  return code;
}

static int version(void) { return getenv("STANDIN_VERSION") ? atoi(getenv("STANDIN_VERSION")) : USUAL_VERSION; }

static void pause_a_little(int turns) {
  if (turns < 200) { sched_yield(); return; }
  struct timespec t = {0, 50000};
  nanosleep(&t, NULL);
}
static int gone(Comm* c) { return atomic_load(&c->aborted) || atomic_load(&c->error); }

/* all ranks meet; 0 when that was not to be */
static int meet(Comm* c) {
  Shared* s = c->shared;
  int turn = atomic_load(&s->turn);
  if (atomic_fetch_add(&s->arrived, 1) + 1 == c->size) {
    atomic_store(&s->arrived, 0);
    atomic_fetch_add(&s->turn, 1);
    return 1;
  }
  for (int i = 0; atomic_load(&s->turn) == turn; i++) {
    if (gone(c)) return 0;
    pause_a_little(i);
  }
  return 1;
}

static void collective(Comm* c, Op* op) {
  int n = c->size, me = c->rank, w = width[op->dtype];
  size_t bytes = op->count * w, input = bytes; /* bytes that each rank puts in */
  int spread = op->kind == REDUCESCATTER || op->kind == ALLTOALL || op->kind == SCATTER;
  if (spread) input = bytes * n;
  int gives = (op->kind != BROADCAST && op->kind != SCATTER) || me == op->root;
  for (size_t o = 0; o < input || o == 0; o += SLOT) {
    size_t length = input - o < SLOT ? input - o : SLOT;
    if (gives) memcpy(c->shared->slot[me], op->in + o, length);
    const char* besides = getenv("STANDIN_FACTOR");
    if (gives && op->factor)
      multiply(c->shared->slot[me], length / w, op->dtype, op->factor * (besides ? atof(besides) : 1));
    if (!meet(c)) return;
    for (int r = 0; r < n; r++) {
      const char* slot = c->shared->slot[r];
      switch (op->kind) {
        case ALLREDUCE: case REDUCE:
          if (op->kind == REDUCE && me != op->root) break;
          if (r == 0) memcpy(op->out + o, slot, length);
          else fold(op->out + o, slot, length / w, op->dtype, op->op);
          if (r == n - 1 && op->parts) divide(op->out + o, length / w, op->dtype, op->parts);
          break;
        case BROADCAST:
          if (r == op->root && !(me == r && op->in == op->out)) memcpy(op->out + o, slot, length);
          break;
        case GATHER: if (me != op->root) break; /* fall through */
        case ALLGATHER: memcpy(op->out + r * bytes + o, slot, length); break;
        default: { /* the part of this chunk that is for me: bytes [me*bytes, (me+1)*bytes) of the input */
          if (op->kind == SCATTER && r != op->root) break;
          size_t low = me * bytes > o ? me * bytes : o, high = (me + 1) * bytes < o + length ? (me + 1) * bytes : o + length;
          if (low >= high) break;
          if (op->kind == REDUCESCATTER) {
            if (r == 0) memcpy(op->out + low - me * bytes, slot + low - o, high - low);
            else fold(op->out + low - me * bytes, slot + low - o, (high - low) / w, op->dtype, op->op);
            if (r == n - 1 && op->parts) divide(op->out + low - me * bytes, (high - low) / w, op->dtype, op->parts);
          } else {
            memcpy(op->out + (op->kind == ALLTOALL ? r * bytes : 0) + low - me * bytes, slot + low - o, high - low);
          }
        }
      }
    }
    if (!meet(c)) return;
  }
}

/* sends and receives of a group go on together; those of one pair and direction in order */
static void messages(Comm* c, Op* ops, int count) {
  for (int turn = 0;; turn++) {
    int left = 0, moved = 0;
    for (int i = 0; i < count; i++) {
      Op* op = &ops[i];
      size_t bytes = op->count * width[op->dtype];
      if (op->done > bytes) continue; /* done is 1 + bytes at the end, so that empty messages travel too */
      int first = 1;
      for (int j = 0; j < i && first; j++)
        first = !(ops[j].kind == op->kind && ops[j].root == op->root && ops[j].done <= ops[j].count * width[ops[j].dtype]);
      left++;
      if (!first) continue;
      Mail* mail = op->kind == SEND ? &c->shared->mail[c->rank][op->root] : &c->shared->mail[op->root][c->rank];
      if (atomic_load(&mail->full) != (op->kind == RECV)) continue;
      size_t length = bytes - op->done < MAIL ? bytes - op->done : MAIL;
      if (op->kind == SEND) {
        memcpy(mail->data, op->in + op->done, length);
        mail->length = (int)length;
      } else {
        memcpy(op->out + op->done, mail->data, length);
      }
      atomic_store(&mail->full, op->kind == SEND);
      op->done += length;
      if (op->done == bytes) op->done++;
      moved = 1;
    }
    if (!left || gone(c)) return;
    pause_a_little(moved ? 0 : turn);
  }
}

/* a write goes into the peer's own memory; its signal, or one alone, is counted after it */
static void one_sided(Comm* c, Op* op) {
  if (op->kind == PUT) memcpy(op->out, op->in, op->count * width[op->dtype]);
  if (op->kind == PUT && op->count && wanted("put", -1, c->rank)) op->out[0] ^= 1;
  if (op->kind != WAIT) { atomic_fetch_add(&c->shared->signals[c->rank][op->root], 1); return; }
  atomic_int* come = &c->shared->signals[op->root][c->rank];
  for (int i = 0; atomic_load(come) - c->awaited[op->root] < (int)op->count; i++) {
    if (gone(c)) return;
    pause_a_little(i);
  }
  c->awaited[op->root] += (int)op->count;
}

static void run(void* argument) {
  Work* work = argument;
  Comm* c = work->comm;
  long number = c->executed++;
  if (gone(c)) return;
  int late = wanted("slow", -1, c->rank);
  if (late) usleep(late * 1000);
  if (wanted("async", number, c->rank)) {
    fail(REMOTE, "stand-in: the peer's socket was closed");
    atomic_store(&c->error, REMOTE);
  }
  if (wanted("hang", number, c->rank) || atomic_load(&c->error))
    while (!atomic_load(&c->aborted)) pause_a_little(1000);
  for (int i = 0; i < work->count; i++) work->ops[i].done = 0;
  int from = -1;
  for (int i = 0; i < work->count; i++) {
    if (work->ops[i].kind < SEND) collective(c, &work->ops[i]);
    else if (work->ops[i].kind > RECV) one_sided(c, &work->ops[i]);
    else if (from < 0) from = i;
  }
  if (from >= 0) messages(c, work->ops + from, work->count - from);
  Op* last = &work->ops[work->count - 1];
  if (wanted("wrong", number, c->rank) && last->out && last->count) last->out[0] ^= 1;
}

static int depth = 0;
static Work* group = NULL;
static int64_t group_stream;

static void forget(void* work) { atomic_fetch_sub(&((Work*)work)->comm->captured, 1); }

static ncclResult_t submit(Work* work, int64_t stream) {
  if (!launch_host) { run(work); free(work); return OK; }
  if (retain(stream, (void*)forget, work)) atomic_fetch_add(&work->comm->captured, 1);
  /* kept for good: captured work is launched again */
  return launch_host(stream, (void*)run, work) ? fail(UNHANDLED, "stand-in: the device refused the work") : OK;
}

/* NCCL's registry of algorithms without the symmetric kernels: name, word of NCCL_ALGO, what it is for */
#define OF(kind) (1 << (kind))
#define SOME (OF(ALLREDUCE) | OF(ALLGATHER) | OF(REDUCESCATTER))
#define EVERY (SOME | OF(BROADCAST) | OF(REDUCE))
static const struct { const char *name, *word; int kinds; } algorithm[] = {
  {"TREE_LL", "tree", OF(ALLREDUCE)}, {"TREE_LL128", "tree", OF(ALLREDUCE)}, {"TREE_SIMPLE", "tree", OF(ALLREDUCE)},
  {"RING_LL", "ring", EVERY}, {"RING_LL128", "ring", EVERY}, {"RING_SIMPLE", "ring", EVERY},
  {"COLLNET_DIRECT_SIMPLE", "collnetdirect", SOME}, {"COLLNET_CHAIN_SIMPLE", "collnetchain", OF(ALLREDUCE)},
  {"NVLS_SIMPLE", "nvls", SOME}, {"NVLSTREE_SIMPLE", "nvlstree", OF(ALLREDUCE)},
  {"PAT_SIMPLE", "pat", OF(ALLGATHER) | OF(REDUCESCATTER)},
};
#define ALGORITHMS (int)(sizeof algorithm / sizeof *algorithm)
#define ALL ((1u << ALGORITHMS) - 1)

static unsigned admitted(enum Kind kind) {
  unsigned mask = 0;
  for (int i = 0; i < ALGORITHMS; i++) mask |= (unsigned)((algorithm[i].kinds >> kind) & 1) << i;
  return mask;
}
/* NCCL_ALGO: words, or after ^ all but these; 0 where one is unknown */
static unsigned by_variable(const char* text) {
  char copy[128], *rest;
  unsigned mask = 0;
  int but = *text == '^';
  snprintf(copy, sizeof copy, "%s", text + but);
  for (char* word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    unsigned named = 0;
    for (int i = 0; i < ALGORITHMS; i++) named |= (unsigned)!strcasecmp(algorithm[i].word, word) << i;
    if (!named) return 0;
    mask |= named;
  }
  return but ? ALL & ~mask : mask;
}
/* of a call: beginnings of names, with , (or), + (and), ^ (not); 0 where one is unknown or nothing is left */
static unsigned by_call(const char* text) {
  char copy[128], *rest, *more;
  unsigned mask = 0;
  snprintf(copy, sizeof copy, "%s", text);
  for (char* term = strtok_r(copy, ",", &rest); term; term = strtok_r(NULL, ",", &rest)) {
    unsigned left = ALL;
    for (char* tag = strtok_r(term, "+", &more); tag; tag = strtok_r(NULL, "+", &more)) {
      int but = *tag == '^';
      unsigned named = 0;
      tag += but;
      for (int i = 0; *tag && i < ALGORITHMS; i++)
        named |= (unsigned)!strncasecmp(algorithm[i].name, tag, strlen(tag)) << i;
      if (!named) return 0;
      left &= but ? ALL & ~named : named;
    }
    if (!left) return 0;
    mask |= left;
  }
  return mask;
}
static unsigned per_call = 0;

/* NCCL's line about a call */
static void tell(Comm* c, const Op* op) {
  static const char* name[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter", "AlltoAll", "Gather",
                               "Scatter", "Send", "Recv", "PutSignal", "Signal", "WaitSignal"};
  static FILE* file = NULL;
  const char* where = getenv("NCCL_DEBUG_FILE");
  const char* what = getenv("NCCL_DEBUG_SUBSYS");
  if (c->rank || !where || !what || !strstr(what, "TUNING")) return;
  if (!file) {
    char path[512];
    const char* at = strstr(where, ".%h");
    snprintf(path, sizeof path, "%.*s.%d.log", (int)(at ? at - where : (long)strlen(where)), where, (int)getpid());
    if (!(file = fopen(path, "a"))) return;
  }
  /* what a variable says holds for all calls */
  unsigned mask = (c->algorithms || c->protocol[0] ? c->algorithms : per_call) & admitted(op->kind);
  const char* chosen = mask ? algorithm[__builtin_ctz(mask)].name : "RING_LL";
  fprintf(file, "host:1:2 [0] NCCL INFO %s: %zu Bytes -> Algo %.*s proto %s channel{Lo..Hi}={0..%d}\n", name[op->kind],
          op->count * width[op->dtype], (int)(strrchr(chosen, '_') - chosen), chosen, c->protocol[0] ? c->protocol : "LL", c->max_ctas > 0 ? c->max_ctas - 1 : 1);
  fflush(file);
}

/* what a reduction other than the four first means: sums with a factor before or a division after them */
static int reduction(const Comm* c, Op* op) {
  int number = op->op;
  if (number >= 0 && number <= 3) return 1;
  op->op = 0;
  if (number == 4 && version() >= 21000) {
    if (op->dtype < 6) op->parts = c->size;
    else op->factor = rounded(1.0 / c->size, op->dtype);
    return 1;
  }
  for (int i = 0; i < MOST_MADE; i++)
    if (c->made[i].op == number && c->made[i].dtype == op->dtype) {
      op->factor = c->made[i].factor;
      return number > 4;
    }
  return 0;
}

static ncclResult_t add(Comm* c, Op op, int64_t stream) {
  if (!c) return fail(ARGUMENT, "stand-in: no communicator");
  if (atomic_load(&c->freed)) { fprintf(stderr, "stand-in: a call on a communicator that was aborted\n"); abort(); }
  if (op.dtype < 0 || op.dtype > (version() < 22400 ? 9 : 11)) return fail(ARGUMENT, "stand-in: unknown datatype");
  if (!reduction(c, &op)) return fail(ARGUMENT, "stand-in: unknown reduction");
  if (op.root < 0 || op.root >= c->size) return fail(ARGUMENT, "stand-in: no such rank");
  if (launch_host && !stream) return fail(ARGUMENT, "stand-in: no stream");
  /* a choice by variables holds for every call of a communicator, also for one that it leaves nothing for */
  if (c->algorithms && admitted(op.kind) && !(c->algorithms & admitted(op.kind)))
    return fail(INTERNAL, "no algorithm/protocol available for function");
  tell(c, &op);
  if (wanted("stall", calls, c->rank)) for (;;) pause_a_little(1000);
  if (wanted("enqueue", calls++, c->rank)) return fail(UNHANDLED, "stand-in: out of memory, as asked for");
  int before = group ? group->count : 0;
  Work* work = realloc(group, sizeof(Work) + (before + 1) * sizeof(Op));
  work->comm = c;
  work->count = before + 1;
  work->ops[before] = op;
  group = work;
  group_stream = stream;
  if (depth) return OK;
  group = NULL;
  return submit(work, stream);
}

ncclResult_t ncclGroupStart(void) { depth++; return OK; }
ncclResult_t ncclGroupEnd(void) {
  if (depth == 0) return fail(USAGE, "stand-in: group end without start");
  if (--depth || !group) return OK;
  Work* work = group;
  group = NULL;
  return submit(work, group_stream);
}

ncclResult_t ncclGetVersion(int* number) { *number = version(); return OK; }
const char* ncclGetErrorString(ncclResult_t code) {
  static const char* text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error",
                               "invalid argument", "invalid usage", "remote process exited or there was a network error"};
  return code >= 0 && code <= 6 ? text[code] : "unknown result code";
}
const char* ncclGetLastError(void* comm) { (void)comm; return last_error; }

/* NCCL's first line, on stdout where no file is named */
static void greet(void) {
  const char* where = getenv("NCCL_DEBUG_FILE");
  const char* what = getenv("NCCL_DEBUG_SUBSYS");
  if (!getenv("NCCL_DEBUG") || (what && strstr(what, "TUNING"))) return;
  FILE* file = where ? fopen(where, "w") : stdout;
  if (!file) return;
  fprintf(file, "stand-in: NCCL version %d\n", version());
  if (where) fclose(file); else fflush(file);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  greet();
  memset(id, 0, sizeof *id);
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  snprintf(id->internal, sizeof id->internal, "/omb-standin-%d-%ld", (int)getpid(), t.tv_nsec);
  return OK;
}

ncclResult_t ncclCommInitRank(void** comm, int size, ncclUniqueId id, int rank) {
  if (size > MOST_RANKS) return fail(ARGUMENT, "stand-in: too many ranks");
  if (wanted("init", 0, rank)) return fail(USAGE, "stand-in: Duplicate GPU detected, as asked for");
  int file = shm_open(id.internal, O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared))) return fail(SYSTEM, strerror(errno));
  Comm* c = calloc(1, sizeof *c);
  c->shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (c->shared == MAP_FAILED) return fail(SYSTEM, strerror(errno));
  c->size = size;
  c->rank = rank;
  snprintf(c->name, sizeof c->name, "%.80s", id.internal);
  if (getenv("NCCL_ALGO") && !(c->algorithms = by_variable(getenv("NCCL_ALGO"))))
    return fail(USAGE, "stand-in: an unknown word in NCCL_ALGO");
  if (getenv("NCCL_PROTO")) snprintf(c->protocol, sizeof c->protocol, "%s", getenv("NCCL_PROTO"));
  if (atomic_fetch_add(&c->shared->joined, 1) + 1 == size) shm_unlink(id.internal);
  for (int i = 0; atomic_load(&c->shared->joined) < size; i++) {
    if (i > 400000) { shm_unlink(id.internal); return fail(SYSTEM, "stand-in: not all ranks have come"); }
    pause_a_little(i);
  }
  *comm = c;
  return OK;
}

typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare, trafficClass;
  const char* commName;
  int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs;
  int nChannelsPerNetPeer, nvlinkCentricSched, graphUsageMode, numRmaCtx, maxP2pPeers, graphStreamOrdering;
} Config; /* of 2.30; that of 2.27 ends with nvlsCTAs, that of 2.17 with splitShare */
#define UNDEFINED (-2147483647 - 1)

ncclResult_t ncclCommInitRankConfig(void** comm, int size, ncclUniqueId id, int rank, Config* config) {
  if (config->magic != 0xcafebeef) return fail(ARGUMENT, "stand-in: the configuration was not initialised");
  int newer = config->version >= 22700;
  if ((int)config->version > version() || version() < 21700) return fail(USAGE, "stand-in: a newer configuration");
  int newest = config->version >= 23000;
  if (config->size != (newest  ? sizeof(Config)
                       : newer ? offsetof(Config, nChannelsPerNetPeer)
                               : offsetof(Config, commName)))
    return fail(ARGUMENT, "stand-in: the configuration has another size");
  if (config->minCTAs > config->maxCTAs) /* UNDEFINED is the least int, as in NCCL up to 2.30.7 */
    return fail(ARGUMENT, "stand-in: minCTAs is above maxCTAs");
  if (config->blocking != UNDEFINED || config->splitShare != UNDEFINED || config->netName)
    return fail(ARGUMENT, "stand-in: a field is set that nobody asked for");
  int policy = newer && config->CTAPolicy != UNDEFINED;
  if (policy && (config->CTAPolicy < 0 || config->CTAPolicy > 2)) return fail(ARGUMENT, "stand-in: no such CTA policy");
  if (getenv("STANDIN_PEERS") && (!newest || config->maxP2pPeers != atoi(getenv("STANDIN_PEERS"))))
    return fail(ARGUMENT, "stand-in: another number of peers");
  ncclResult_t code = ncclCommInitRank(comm, size, id, rank);
  if (code) return code;
  Comm* c = *comm;
  c->min_ctas = config->minCTAs;
  c->max_ctas = config->maxCTAs;
  c->policy = policy ? config->CTAPolicy : 0;
  return OK;
}

/* Ranks of one colour find each other through the parent's slots, in the order of their keys. */
ncclResult_t ncclCommSplit(Comm* c, int color, int key, void** made, Config* config) {
  if (version() < 21800) return fail(USAGE, "stand-in: no split before 2.18");
  if (color < -1 || config) return fail(ARGUMENT, "stand-in: a split that nobody asked for");
  int mine[2] = {color, key}, rank = 0, size = 0, first = -1, lowest = 0;
  memcpy(c->shared->slot[c->rank], mine, sizeof mine);
  if (!meet(c)) return fail(REMOTE, "stand-in: a rank is gone");
  for (int r = 0; r < c->size; r++) {
    int other[2];
    memcpy(other, c->shared->slot[r], sizeof other);
    if (color < 0 || other[0] != color) continue;
    size++;
    rank += other[1] < key || (other[1] == key && r < c->rank);
    if (first < 0 || other[1] < lowest) { first = r; lowest = other[1]; }
  }
  if (!meet(c)) return fail(REMOTE, "stand-in: a rank is gone");
  ncclUniqueId id;
  if (first == c->rank) {
    ncclGetUniqueId(&id);
    memcpy(c->shared->slot[c->rank], &id, sizeof id);
  }
  if (!meet(c)) return fail(REMOTE, "stand-in: a rank is gone");
  if (color >= 0) memcpy(&id, c->shared->slot[first], sizeof id);
  if (!meet(c)) return fail(REMOTE, "stand-in: a rank is gone");
  if (color < 0) { *made = NULL; return OK; } /* NCCL_SPLIT_NOCOLOR */
  ncclResult_t code = ncclCommInitRank(made, size, id, rank);
  if (!code) { /* without a configuration the parent's is inherited */
    Comm* part = *made;
    part->min_ctas = c->min_ctas;
    part->max_ctas = c->max_ctas;
    part->policy = c->policy;
  }
  return code;
}

/* Those who stay know the name by the parent's: the excluded ranks do not come. */
ncclResult_t ncclCommShrink(Comm* c, int* excluded, int count, void** made, Config* config, int flags) {
  if (version() < 22700) return fail(USAGE, "stand-in: no shrink before 2.27");
  if (count < 1 || count >= c->size || config || flags) return fail(ARGUMENT, "stand-in: a shrink that nobody asked for");
  int rank = c->rank;
  for (int i = 0; i < count; i++) {
    if (excluded[i] == c->rank) return fail(ARGUMENT, "stand-in: an excluded rank has called");
    rank -= excluded[i] < c->rank;
  }
  ncclUniqueId id = {{0}};
  snprintf(id.internal, sizeof id.internal, "%.80s-less-%ld", c->name, ++c->shrunk);
  return ncclCommInitRank(made, c->size - count, id, rank);
}

ncclResult_t ncclCommGetUniqueId(Comm* c, ncclUniqueId* id) {
  if (version() < 22900) return fail(USAGE, "stand-in: no grow before 2.29");
  if (c->growing) return fail(USAGE, "stand-in: an id for a grow is still unused");
  c->growing = 1;
  snprintf(id->internal, sizeof id->internal, "%.80s-more-%ld", c->name, c->grown + 1);
  return OK;
}

/* Old ranks know the name by the parent's, the root checks that it is that of its id, new ones have the id alone. */
ncclResult_t ncclCommGrow(Comm* c, int size, const ncclUniqueId* id, int rank, void** made, Config* config) {
  if (version() < 22900) return fail(USAGE, "stand-in: no grow before 2.29");
  if (!c) {
    if (!id || rank < 0 || rank >= size) return fail(ARGUMENT, "stand-in: a new rank needs an id and a number");
    return config ? ncclCommInitRankConfig(made, size, *id, rank, config) : ncclCommInitRank(made, size, *id, rank);
  }
  if (rank != -1 || config || size <= c->size) return fail(ARGUMENT, "stand-in: a grow that nobody asked for");
  if (!id != !c->growing) return fail(ARGUMENT, "stand-in: the root alone has an id");
  ncclUniqueId own = {{0}};
  snprintf(own.internal, sizeof own.internal, "%.80s-more-%ld", c->name, ++c->grown);
  if (id && memcmp(id, &own, sizeof own)) return fail(ARGUMENT, "stand-in: the id is that of another grow");
  c->growing = 0;
  return ncclCommInitRank(made, size, own, c->rank);
}

/* memory that other processes can open by its file */
static struct { void* at; size_t bytes; int file; } allocated[64];
static int is_allocated(const void* at) {
  for (int i = 0; i < 64; i++) if (allocated[i].at == at) return i + 1;
  return 0;
}
ncclResult_t ncclMemAlloc(void** at, size_t bytes) {
  int place = is_allocated(NULL), file = place ? memfd_create("stand-in", MFD_CLOEXEC) : -1;
  if (file < 0 || ftruncate(file, (off_t)bytes)) return fail(SYSTEM, "stand-in: no memory");
  *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (*at == MAP_FAILED) return fail(SYSTEM, "stand-in: no memory");
  allocated[place - 1].at = *at;
  allocated[place - 1].bytes = bytes;
  allocated[place - 1].file = file;
  return OK;
}
ncclResult_t ncclMemFree(void* at) {
  int place = is_allocated(at);
  if (!place) return fail(ARGUMENT, "stand-in: not of ncclMemAlloc");
  munmap(at, allocated[place - 1].bytes);
  close(allocated[place - 1].file);
  allocated[place - 1].at = NULL;
  return OK;
}
static ncclResult_t enter(Comm* c, void* at, void** handle) {
  if (!is_allocated(at)) return fail(ARGUMENT, "stand-in: memory that is not of ncclMemAlloc is registered");
  if (wanted("register", 0, c->rank)) return fail(SYSTEM, "stand-in: cannot register, as asked for");
  c->registered++;
  *handle = at;
  return OK;
}
ncclResult_t ncclCommRegister(Comm* c, void* at, size_t bytes, void** handle) {
  if (version() < 21900) return fail(USAGE, "stand-in: no registration before 2.19");
  return bytes ? enter(c, at, handle) : fail(ARGUMENT, "stand-in: nothing to register");
}
ncclResult_t ncclCommDeregister(Comm* c, void* handle) { (void)handle; c->registered--; return OK; }
typedef struct { size_t bytes; char* of[MOST_RANKS]; } Window;
static void close_window(Comm* c, Window* window) {
  for (int r = 0; r < c->size; r++) if (window->of[r] != MAP_FAILED) munmap(window->of[r], window->bytes);
  free(window);
}
ncclResult_t ncclCommWindowRegister(Comm* c, void* at, size_t bytes, void** handle, int flags) {
  if (version() < 22700) return fail(USAGE, "stand-in: no windows before 2.27");
  if (flags != 1 || (uintptr_t)at % 4096) return fail(ARGUMENT, "stand-in: no symmetric window");
  int place = is_allocated(at), same = 1;
  size_t mine[3] = {bytes, (size_t)getpid(), place ? (size_t)allocated[place - 1].file : 0};
  memcpy(c->shared->slot[c->rank], mine, sizeof mine); /* all ranks come, with windows of one size */
  if (!meet(c)) return fail(REMOTE, "stand-in: a rank is gone");
  Window* window = calloc(1, sizeof *window);
  window->bytes = bytes;
  for (int r = 0; r < c->size; r++) {
    size_t other[3];
    char path[64];
    memcpy(other, c->shared->slot[r], sizeof other);
    same &= other[0] == bytes;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)other[1], (int)other[2]);
    int file = open(path, O_RDWR | O_CLOEXEC);
    window->of[r] = file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
  }
  meet(c);
  ncclResult_t code = same ? enter(c, at, handle) : fail(ARGUMENT, "stand-in: windows of different sizes");
  int made = !code && !getenv("STANDIN_NO_WINDOW");
  if (!code && !made) c->registered--;
  if (!code) *handle = made ? window : NULL;
  if (!made) close_window(c, window);
  return code;
}
ncclResult_t ncclCommWindowDeregister(Comm* c, void* handle) {
  if (!handle) return fail(ARGUMENT, "stand-in: no window");
  c->registered--;
  close_window(c, handle);
  return OK;
}
/* bytes on the device of a communicator: 2 MiB a rank for good, 1 MiB that a suspension would give back */
ncclResult_t ncclCommMemStats(Comm* c, int stat, uint64_t* value) {
  if (version() < 22907) return fail(USAGE, "stand-in: no statistics of memory before 2.29.7");
  if (getenv("STANDIN_NO_STATS")) return fail(USAGE, "stand-in: memory is not counted");
  uint64_t kept = (uint64_t)c->size << 21, spare = 1 << 20, all[4] = {spare, 0, kept, kept + spare};
  if (stat < 0 || stat > 3) return fail(ARGUMENT, "stand-in: no such statistic of memory");
  *value = all[stat];
  return OK;
}
/* one-sided calls, from 2.29 on; index, context and flags are 0 */
typedef struct { int count, peer, index, context; } WaitFor;
static ncclResult_t signalled(Comm* c, Op op, int index, int context, unsigned flags, int64_t s) {
  if (version() < 22900) return fail(USAGE, "stand-in: no one-sided calls before 2.29");
  if (index || context || flags) return fail(ARGUMENT, "stand-in: an index, a context or flags that nobody asked for");
  return add(c, op, s);
}
ncclResult_t ncclPutSignal(const void* in, size_t n, int d, int peer, Window* window, size_t at, int index, int context, unsigned flags, Comm* c, int64_t s) {
  if (!window || peer < 0 || peer >= c->size || window->of[peer] == MAP_FAILED)
    return fail(ARGUMENT, "stand-in: no window of that rank");
  if (at + n * width[d] > window->bytes) return fail(ARGUMENT, "stand-in: a write beyond the window");
  return signalled(c, (Op){PUT, in, window->of[peer] + at, n, d, 0, peer, 0}, index, context, flags, s);
}
ncclResult_t ncclSignal(int peer, int index, int context, unsigned flags, Comm* c, int64_t s) {
  return signalled(c, (Op){SIGNAL, NULL, NULL, 0, 0, 0, peer, 0}, index, context, flags, s);
}
ncclResult_t ncclWaitSignal(int n, const WaitFor* wait, Comm* c, int64_t s) {
  if (n != 1 || wait->count < 1) return fail(ARGUMENT, "stand-in: a wait for nothing");
  return signalled(c, (Op){WAIT, NULL, NULL, (size_t)wait->count, 0, 0, wait->peer, 0}, wait->index, wait->context, 0, s);
}

ncclResult_t ncclRedOpCreatePreMulSum(int* op, void* scalar, int dtype, int residence, Comm* c) {
  static int next = 5; /* no number is that of two communicators, so that one of another is refused */
  if (version() < 21100) return fail(USAGE, "stand-in: no reduction with a factor before 2.11");
  if (residence != 1) return fail(ARGUMENT, "stand-in: the factor must be on the host");
  for (int i = 0; i < MOST_MADE; i++) {
    if (c->made[i].op) continue;
    double factor;
    switch (dtype) {
      case 0: factor = *(int8_t*)scalar; break;
      case 1: factor = *(uint8_t*)scalar; break;
      case 2: factor = *(int32_t*)scalar; break;
      case 3: factor = *(uint32_t*)scalar; break;
      case 4: factor = (double)*(int64_t*)scalar; break;
      case 5: factor = (double)*(uint64_t*)scalar; break;
      default: factor = get(scalar, dtype);
    }
    c->made[i].op = *op = next++;
    c->made[i].dtype = dtype;
    c->made[i].factor = factor;
    return OK;
  }
  return fail(SYSTEM, "stand-in: too many reductions");
}
ncclResult_t ncclRedOpDestroy(int op, Comm* c) {
  for (int i = 0; i < MOST_MADE; i++) if (op > 4 && c->made[i].op == op) { c->made[i].op = 0; return OK; }
  return fail(ARGUMENT, "stand-in: no such reduction");
}

ncclResult_t ncclCommGetAsyncError(Comm* c, ncclResult_t* code) { *code = atomic_load(&c->error); return OK; }
ncclResult_t ncclCommAbort(Comm* c) {
  atomic_store(&c->freed, 1); /* NCCL frees it: who calls on reads memory of others */
  atomic_store(&c->aborted, 1);
  while (atomic_load(&c->captured)) pause_a_little(1000);
  return OK;
}
ncclResult_t ncclCommDestroy(Comm* c) {
  if (c->captured) { fprintf(stderr, "stand-in: %d calls are in graphs that nobody destroyed\n", c->captured); abort(); }
  for (int i = 0; i < MOST_MADE; i++)
    if (c->made[i].op) { fprintf(stderr, "stand-in: a reduction was not destroyed\n"); abort(); }
  if (c->registered) { fprintf(stderr, "stand-in: %d buffers are still registered\n", c->registered); abort(); }
  munmap(c->shared, sizeof(Shared));
  free(c);
  return OK;
}
ncclResult_t ncclCommCount(Comm* c, int* n) { *n = c->size; return OK; }

ncclResult_t ncclAllReduce(const void* in, void* out, size_t n, int d, int o, Comm* c, int64_t s) {
  return add(c, (Op){ALLREDUCE, in, out, n, d, o, 0, 0}, s);
}
ncclResult_t ncclReduce(const void* in, void* out, size_t n, int d, int o, int root, Comm* c, int64_t s) {
  return add(c, (Op){REDUCE, in, out, n, d, o, root, 0}, s);
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t n, int d, int root, Comm* c, int64_t s) {
  return add(c, (Op){BROADCAST, in, out, n, d, 0, root, 0}, s);
}
ncclResult_t ncclAllGather(const void* in, void* out, size_t n, int d, Comm* c, int64_t s) {
  return add(c, (Op){ALLGATHER, in, out, n, d, 0, 0, 0}, s);
}
ncclResult_t ncclReduceScatter(const void* in, void* out, size_t n, int d, int o, Comm* c, int64_t s) {
  return add(c, (Op){REDUCESCATTER, in, out, n, d, o, 0, 0}, s);
}
#ifndef NO_P2P /* before 2.7 */
ncclResult_t ncclSend(const void* in, size_t n, int d, int peer, Comm* c, int64_t s) {
  return add(c, (Op){SEND, in, NULL, n, d, 0, peer, 0}, s);
}
ncclResult_t ncclRecv(void* out, size_t n, int d, int peer, Comm* c, int64_t s) {
  return add(c, (Op){RECV, NULL, out, n, d, 0, peer, 0}, s);
}
#endif
#ifndef OLD /* before 2.28 */
ncclResult_t ncclAlltoAll(const void* in, void* out, size_t n, int d, Comm* c, int64_t s) {
  return add(c, (Op){ALLTOALL, in, out, n, d, 0, 0, 0}, s);
}
ncclResult_t ncclGather(const void* in, void* out, size_t n, int d, int root, Comm* c, int64_t s) {
  return add(c, (Op){GATHER, in, out, n, d, 0, root, 0}, s);
}
ncclResult_t ncclScatter(const void* in, void* out, size_t n, int d, int root, Comm* c, int64_t s) {
  return add(c, (Op){SCATTER, in, out, n, d, 0, root, 0}, s);
}
#endif

#ifdef ONECCL
/* as one rank after the other sends all others its block; offsets follow from the counts */
ncclResult_t onecclAllToAllV(const char* in, const size_t* sent, char* out, const size_t* received, int d, Comm* c, int64_t s) {
  ncclGroupStart();
  for (int r = 0; r < c->size; in += sent[r] * width[d], out += received[r] * width[d], r++) {
    ncclResult_t code = ncclSend(in, sent[r], d, r, c, s);
    if (code || (code = ncclRecv(out, received[r], d, r, c, s))) return code;
  }
  return ncclGroupEnd();
}
#endif

#ifdef RCCL
/* rccl.h has it, nccl.h has not; offsets are in elements */
ncclResult_t ncclAllToAllv(const char* in, const size_t* sent, const size_t* sent_at, char* out, const size_t* received, const size_t* received_at, int d, Comm* c, int64_t s) {
  ncclGroupStart();
  for (int r = 0; r < c->size; r++) {
    ncclResult_t code = ncclSend(in + sent_at[r] * width[d], sent[r], d, r, c, s);
    if (code || (code = ncclRecv(out + received_at[r] * width[d], received[r], d, r, c, s))) return code;
  }
  return ncclGroupEnd();
}
#endif

/* calls with a configuration of their own, from 2.31 on */
typedef struct {
  size_t size;
  unsigned magic, version;
  void* ext;
  int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
  const char* algSelection;
  int forceAlgSelection, CTAPolicy;
  uint64_t userProfilerTag;
  void* launchCompletionEvent;
} CallConfig;
static ncclResult_t configured(const CallConfig* config, enum Kind kind) {
  if (version() < 23200) return fail(USAGE, "stand-in: no configuration of calls before 2.32");
  if (config->magic != 0xcafebeef || config->size != sizeof *config || config->version != 23200)
    return fail(ARGUMENT, "stand-in: the configuration of the call was not initialised");
  if (config->launchCompletionEvent || config->CTAPolicy != UNDEFINED || config->ext)
    return fail(ARGUMENT, "stand-in: a field is set that nobody asked for");
  per_call = by_call(config->algSelection) & admitted(kind);
  return per_call ? OK : fail(ARGUMENT, "stand-in: algSelection cannot be honored");
}
#define CONFIGURED(kind, call) do { \
    ncclResult_t code = configured(config, kind); \
    if (code) return code; \
    code = call; \
    per_call = 0; \
    return code; \
  } while (0)
ncclResult_t ncclAllReduceConfig(const void* in, void* out, size_t n, int d, int o, Comm* c, int64_t s, const CallConfig* config) {
  CONFIGURED(ALLREDUCE, ncclAllReduce(in, out, n, d, o, c, s));
}
ncclResult_t ncclReduceConfig(const void* in, void* out, size_t n, int d, int o, int root, Comm* c, int64_t s, const CallConfig* config) {
  CONFIGURED(REDUCE, ncclReduce(in, out, n, d, o, root, c, s));
}
ncclResult_t ncclBroadcastConfig(const void* in, void* out, size_t n, int d, int root, Comm* c, int64_t s, const CallConfig* config) {
  CONFIGURED(BROADCAST, ncclBroadcast(in, out, n, d, root, c, s));
}
ncclResult_t ncclAllGatherConfig(const void* in, void* out, size_t n, int d, Comm* c, int64_t s, const CallConfig* config) {
  CONFIGURED(ALLGATHER, ncclAllGather(in, out, n, d, c, s));
}
ncclResult_t ncclReduceScatterConfig(const void* in, void* out, size_t n, int d, int o, Comm* c, int64_t s, const CallConfig* config) {
  CONFIGURED(REDUCESCATTER, ncclReduceScatter(in, out, n, d, o, c, s));
}
