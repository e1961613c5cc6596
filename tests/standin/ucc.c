/* A stand-in for libucc: the calls of ucc.h that omb-py makes, data really moved between processes.
 *
 * Each rank writes what it puts into a collective to a file in shared memory, which is named by the team and by how
 * many collectives were posted on it before. An operation is done when progress finds the files of all ranks; the last
 * reader of a file removes it.
 *
 * STANDIN_FAIL=init|context|team|post|progress   this call fails
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wunused-function"
#include "numbers.h"

enum { OK = 0, IN_PROGRESS = 1, NOT_SUPPORTED = -1, INVALID = -3, NO_MESSAGE = -6 };
enum { ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, ALLTOALLV, BARRIER, BCAST, GATHER = 9, GATHERV, REDUCE, REDUCE_SCATTER, REDUCE_SCATTERV, SCATTER, SCATTERV };
#define MOST_RANKS 16
#define NAME 160

typedef struct {
  int (*allgather)(void*, void*, size_t, void*, void**);
  int (*test)(void*);
  int (*free)(void*);
  void* info;
  uint32_t size, rank;
} Oob;
typedef struct { uint64_t mask; int type, sync; Oob oob; uint64_t id; void* memory[2]; } ContextParams;
typedef struct {
  uint64_t mask, flags; int ordering; uint64_t outstanding, ep, *list; int range; uint64_t size; int sync; Oob oob;
  void *p2p[5], *memory[2]; struct { int type; uint64_t count; void* map; size_t width; } map; uint64_t id;
} TeamParams;
typedef struct { char* buffer; union { uint64_t count; uint64_t* counts; }; uint64_t more[2]; int memory; } Info;
/* more: of equal blocks the datatype; else displacements and datatype */
typedef struct {
  uint64_t mask; unsigned type; Info src, dst; int op; uint64_t flags, root; int error; uint16_t tag; void *work, *cb[2];
  double timeout; int64_t active[3]; void *src_mem, *dst_mem;
} Args;
typedef struct Req Req;
typedef struct { char name[48]; Req* first; } Context;
typedef struct { Context* context; const uint64_t* ranks; int rank, size, created; long posted; } Team; /* ranks: the caller's, as in UCC */
struct Req { int status; Args args; Team* team; long number; char name[NAME / 2]; Req* next; };
typedef struct { atomic_int readers; size_t length[MOST_RANKS]; char data[]; } File;

static int fails(const char* what) { const char* text = getenv("STANDIN_FAIL"); return text && !strcmp(text, what); }

/* of UCC's types: their size, and their number in numbers.h (-1: it has none) */
static const int size_of[] = {1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 2, 4, 8, 2, 16, 8, 16, 32};
static const int number_of[] = {0, -1, 2, 4, -1, 1, -1, 3, 5, -1, 6, 7, 8, 9, -1, -1, -1, -1};

static int kind_of(const Args* a) { return __builtin_ctz(a->type); }
static int has(unsigned set, int kind) { return set >> kind & 1; }
#define SET(a, b) (1u << (a) | 1u << (b))
static const unsigned VECTOR_SRC = SET(ALLTOALLV, SCATTERV), VECTOR_DST = SET(ALLTOALLV, ALLGATHERV) | SET(GATHERV, REDUCE_SCATTERV);
static const unsigned TO_EACH = SET(ALLTOALL, ALLTOALLV) | SET(SCATTER, SCATTERV);
static const unsigned REDUCES = SET(ALLREDUCE, REDUCE) | SET(REDUCE_SCATTER, REDUCE_SCATTERV), SCATTERS = SET(REDUCE_SCATTER, REDUCE_SCATTERV);
static const unsigned FROM_ROOT = SET(SCATTER, SCATTERV) | SET(BCAST, BCAST), TO_ROOT = SET(GATHER, GATHERV) | SET(REDUCE, REDUCE);

static int type_of(const Info* i, int vector) { return (int)(i->more[vector ? 1 : 0] >> 3); }
/* the block of a rank, or everything (rank < 0) */
static char* block(const Info* i, int vector, int rank, int ranks, size_t* bytes) {
  size_t width = size_of[type_of(i, vector)];
  if (vector) {
    if (rank < 0) { /* as reductions have it: one after the other */
      *bytes = 0;
      for (int r = 0; r < ranks; r++) *bytes += i->counts[r] * width;
      return i->buffer;
    }
    *bytes = i->counts[rank] * width;
    return i->buffer + ((uint64_t*)i->more[0])[rank] * width;
  }
  *bytes = i->count * width / (rank < 0 ? 1 : ranks);
  return i->buffer + (rank < 0 ? 0 : rank * *bytes);
}

unsigned ucc_get_version(unsigned* a, unsigned* b, unsigned* c) { *a = 1; *b = 10; *c = 0; return 0; }
const char* ucc_get_version_string(void) { return "1.10.0"; }
const char* ucc_status_string(int s) {
  return s == NOT_SUPPORTED ? "Operation is not supported" : s == INVALID ? "Invalid parameter" : s == NO_MESSAGE ? "No pending message" : "Success";
}
int ucc_lib_config_read(const char* p, const char* f, void** c) { *c = (void*)p; return f ? INVALID : OK; }
void ucc_lib_config_release(void* c) { (void)c; }
int ucc_init_version(unsigned a, unsigned b, void* p, void* c, void** lib) {
  static int one;
  (void)p; (void)c;
  *lib = &one;
  return a != 1 || b != 10 || fails("init") ? NOT_SUPPORTED : OK;
}
int ucc_finalize(void* lib) { return lib ? OK : INVALID; }

int ucc_context_config_read(void* lib, const char* f, void** c) { *c = lib; return f ? INVALID : OK; }
void ucc_context_config_release(void* c) { (void)c; }
int ucc_context_create(void* lib, const ContextParams* p, void* c, Context** made) {
  char own[32] = "", all[32 * MOST_RANKS];
  void* request = NULL;
  if (lib != c || p->mask != 4 || p->oob.size > MOST_RANKS || fails("context")) return NOT_SUPPORTED;
  snprintf(own, sizeof own, "%d", getpid());
  int failed = p->oob.allgather(own, all, sizeof own, p->oob.info, &request);
  if (failed) return failed;
  while (p->oob.test(request) == IN_PROGRESS) sched_yield();
  p->oob.free(request);
  if (strcmp(all + p->oob.rank * sizeof own, own)) return INVALID;
  *made = calloc(1, sizeof **made);
  snprintf((*made)->name, sizeof (*made)->name, "/omb-ucc-%.30s", all);
  return OK;
}
int ucc_context_destroy(Context* c) { free(c); return OK; }

int ucc_team_create_post(Context** contexts, uint32_t n, const TeamParams* p, Team** made) {
  if (n != 1 || p->mask != (1 << 2 | 1 << 4 | 1 << 10) || p->map.type != 3 || p->map.width != 8 || p->map.count > MOST_RANKS) return INVALID;
  Team* t = *made = calloc(1, sizeof *t);
  t->context = contexts[0]; t->rank = (int)p->ep; t->size = (int)p->map.count;
  t->ranks = p->map.map;
  return OK;
}
int ucc_team_create_test(Team* t) { return fails("team") ? NO_MESSAGE : t->created++ ? OK : IN_PROGRESS; }
int ucc_team_destroy(Team* t) {
  if (t->created-- > 1) return IN_PROGRESS;
  free(t);
  return OK;
}

static void name_of(const Req* q, int rank, char* name) { snprintf(name, NAME, "%s-%ld.%d", q->name, q->number, rank); }

/* write what this rank puts in: one block, or one for each rank */
static int put_in(Req* q) {
  const Args* a = &q->args;
  int kind = kind_of(a), n = q->team->size, me = q->team->rank, in_place = a->flags & 1;
  int gives = kind != BARRIER && (!has(FROM_ROOT, kind) || me == (int)a->root);
  int from_dst = in_place && !has(FROM_ROOT, kind) && (!has(TO_ROOT, kind) || me == (int)a->root);
  const Info* source = from_dst ? &a->dst : &a->src;
  int vector = has(from_dst ? VECTOR_DST : VECTOR_SRC, kind);
  int own = from_dst && (kind == ALLGATHER || kind == ALLGATHERV || kind == GATHER || kind == GATHERV) ? me : -1;
  int blocks = has(TO_EACH, kind) ? n : 1;
  size_t length[MOST_RANKS] = {0}, total = 0;
  char *at[MOST_RANKS], name[NAME], part[NAME + 8];
  for (int r = 0; gives && r < blocks; r++) {
    at[r] = block(source, vector, has(TO_EACH, kind) ? r : own, n, &length[r]);
    total += length[r];
  }
  name_of(q, me, name);
  snprintf(part, sizeof part, "%s.part", name);
  int fd = shm_open(part, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)(sizeof(File) + total))) return NO_MESSAGE;
  File* f = mmap(NULL, sizeof(File) + total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  memcpy(f->length, length, sizeof length);
  char* to = f->data;
  for (int r = 0; gives && r < blocks; to += length[r++]) memcpy(to, at[r], length[r]);
  munmap(f, sizeof(File) + total);
  char old[NAME + 24], new[NAME + 24];
  snprintf(old, sizeof old, "/dev/shm%s", part);
  snprintf(new, sizeof new, "/dev/shm%s", name);
  return rename(old, new) ? NO_MESSAGE : OK;
}

/* take the block of a rank that is for this one */
static void take(Req* q, int rank, const File* f, char* folded) {
  const Args* a = &q->args;
  int kind = kind_of(a), n = q->team->size, me = q->team->rank, vector = has(VECTOR_DST, kind);
  int here = has(TO_ROOT, kind) ? me == (int)a->root : has(FROM_ROOT, kind) ? rank == (int)a->root : 1;
  const char* from = f->data;
  size_t bytes = 0, length = f->length[0];
  if (kind == BARRIER || !here) return;
  if (has(REDUCES, kind)) {
    int type = type_of(&a->dst, vector);
    if (rank == 0) memcpy(folded, from, length);
    else fold(folded, from, length / size_of[type], number_of[type], a->op);
    return;
  }
  if (has(TO_EACH, kind)) {
    for (int r = 0; r < me; r++) from += f->length[r];
    length = f->length[me];
  }
  int root_keeps = (a->flags & 1) && (has(TO_ROOT, kind) || has(FROM_ROOT, kind)) && rank == me;
  if (root_keeps || (kind == BCAST && rank == me)) return;
  if (kind == BCAST) memcpy(a->src.buffer, from, length);
  else if (has(FROM_ROOT, kind)) memcpy(a->dst.buffer, from, length);
  else memcpy(block(&a->dst, vector, rank, n, &bytes), from, length);
}

static int finish(Req* q) {
  const Args* a = &q->args;
  int n = q->team->size, me = q->team->rank, kind = kind_of(a), vector = has(VECTOR_DST, kind);
  File* files[MOST_RANKS];
  size_t sizes[MOST_RANKS];
  char name[NAME], path[NAME + 24], *folded = NULL;
  for (int r = 0; r < n; r++) {
    name_of(q, r, name);
    snprintf(path, sizeof path, "/dev/shm%s", name);
    if (access(path, F_OK)) return IN_PROGRESS;
  }
  for (int r = 0; r < n; r++) {
    struct stat facts;
    name_of(q, r, name);
    int fd = shm_open(name, O_RDWR, 0600);
    if (fd < 0 || fstat(fd, &facts)) return NO_MESSAGE;
    sizes[r] = (size_t)facts.st_size;
    files[r] = mmap(NULL, sizes[r], PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (!folded) folded = malloc(sizes[r]);
    take(q, r, files[r], folded);
  }
  if (has(REDUCES, kind) && (kind != REDUCE || me == (int)a->root)) {
    size_t bytes = 0, before = 0, mine = files[0]->length[0];
    char* to = a->dst.buffer;
    if (has(SCATTERS, kind)) {
      size_t width = size_of[type_of(&a->dst, vector)];
      for (int r = 0; r < me; r++) before += vector ? a->dst.counts[r] * width : mine / n;
      mine = vector ? a->dst.counts[me] * width : mine / n;
      if (a->flags & 1) to = block(&a->dst, vector, me, n, &bytes);
    }
    memcpy(to, folded + before, mine);
  }
  free(folded);
  for (int r = 0; r < n; r++) {
    name_of(q, r, name);
    if (atomic_fetch_add(&files[r]->readers, 1) + 1 == n) shm_unlink(name);
    munmap(files[r], sizes[r]);
  }
  return OK;
}

int ucc_collective_init(const Args* a, Req** made, Team* t) {
  int kind = kind_of(a);
  if (a->mask != 1 || (a->flags & 12) != 12) return INVALID;
  if (has(REDUCES, kind) && (a->op > 3 || number_of[type_of(&a->dst, has(VECTOR_DST, kind))] < 0)) return NOT_SUPPORTED;
  Req* q = *made = calloc(1, sizeof *q);
  q->status = 2; q->args = *a; q->team = t;
  return OK;
}
int ucc_collective_post(Req* q) {
  if (q->status == IN_PROGRESS || (q->status == OK && !(q->args.flags & 2)) || fails("post")) return INVALID;
  q->number = q->team->posted++;
  int at = snprintf(q->name, sizeof q->name, "%s", q->team->context->name);
  for (int r = 0; r < q->team->size; r++) at += snprintf(q->name + at, sizeof q->name - at, "-%d", (int)q->team->ranks[r]);
  q->status = IN_PROGRESS;
  q->next = q->team->context->first;
  q->team->context->first = q;
  return put_in(q);
}
int ucc_context_progress(Context* c) {
  if (fails("progress") && c->first) return NO_MESSAGE;
  for (Req** at = &c->first; *at;) {
    Req* q = *at;
    q->status = finish(q);
    if (q->status == IN_PROGRESS) at = &q->next;
    else *at = q->next;
  }
  sched_yield();
  return OK;
}
int ucc_collective_finalize(Req* q) {
  if (q->status == IN_PROGRESS) return INVALID;
  free(q);
  return OK;
}
