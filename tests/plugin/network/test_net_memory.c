#include "plugin/network/test_net_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  uintptr_t begin, end;
  void *connection, *handle; /* of a registration that is not taken back */
} Range;

typedef struct {
  Range* ranges;
  size_t n, room;
} Ranges;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Ranges entries, history, sent, refused;
static int isWatched, nRefusals, nFaults;

static Range rangeOf(const void* data, size_t bytes) {
  const Range range = {.begin = (uintptr_t)data, .end = (uintptr_t)data + bytes};
  return range;
}

static void append(Ranges* list, Range range) {
  if (list->n == list->room) {
    list->room = list->room == 0 ? 64 : 2 * list->room;
    list->ranges = realloc(list->ranges, list->room * sizeof(Range));
    if (list->ranges == NULL) abort();
  }
  list->ranges[list->n++] = range;
}

static int overlap(const Range* a, const Range* b) {
  return a->begin < b->end && b->begin < a->end;
}

static int holds(const Range* outer, const Range* inner) {
  return outer->begin <= inner->begin && inner->end <= outer->end;
}

static size_t overlaps(const Ranges* list, Range range) {
  size_t n = 0;
  for (size_t i = 0; i < list->n; ++i) n += (size_t)overlap(&list->ranges[i], &range);
  return n;
}

/* Nobody unloads the library while its functions run. */
__attribute__((destructor)) static void freeRanges(void) {
  free(entries.ranges);
  free(history.ranges);
  free(sent.ranges);
  free(refused.ranges);
}

int enterMemory(void* connection, void* data, size_t bytes, void* handle) {
  pthread_mutex_lock(&mutex);
  Range range = rangeOf(data, bytes);
  const int taken = overlaps(&refused, range) == 0;
  if (!taken) ++nRefusals;
  if (taken) {
    append(&history, range);
    range.connection = connection;
    range.handle = handle;
    append(&entries, range);
  }
  pthread_mutex_unlock(&mutex);
  return taken;
}

void leaveMemory(void* connection, void* handle) {
  pthread_mutex_lock(&mutex);
  size_t i = 0;
  while (i < entries.n && (entries.ranges[i].connection != connection || entries.ranges[i].handle != handle)) ++i;
  if (i == entries.n) ++nFaults;
  if (i < entries.n) entries.ranges[i] = entries.ranges[--entries.n];
  pthread_mutex_unlock(&mutex);
}

void sendMemory(void* connection, void* data, size_t bytes, void* handle) {
  pthread_mutex_lock(&mutex);
  const Range range = rangeOf(data, bytes);
  int covered = bytes == 0;
  for (size_t i = 0; i < entries.n && !covered; ++i) {
    const Range* entry = &entries.ranges[i];
    covered = entry->connection == connection && entry->handle == handle && holds(entry, &range);
  }
  if (!covered) ++nFaults;
  if (isWatched) append(&sent, range);
  pthread_mutex_unlock(&mutex);
}

void closeMemory(void* connection) {
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < entries.n;) {
    if (entries.ranges[i].connection == connection) {
      entries.ranges[i] = entries.ranges[--entries.n];
      ++nFaults;
    } else {
      ++i;
    }
  }
  pthread_mutex_unlock(&mutex);
}

static void refuse(const void* data, size_t bytes) {
  pthread_mutex_lock(&mutex);
  append(&refused, rangeOf(data, bytes));
  pthread_mutex_unlock(&mutex);
}

static int valueOf(const int* number) {
  pthread_mutex_lock(&mutex);
  const int now = *number;
  pthread_mutex_unlock(&mutex);
  return now;
}
static int refusals(void) {
  return valueOf(&nRefusals);
}
static int faults(void) {
  return valueOf(&nFaults);
}

static size_t count(const Ranges* list, const void* data, size_t bytes) {
  pthread_mutex_lock(&mutex);
  const size_t n = overlaps(list, rangeOf(data, bytes));
  pthread_mutex_unlock(&mutex);
  return n;
}
static size_t registrationsOf(const void* data, size_t bytes) {
  return count(&entries, data, bytes);
}
static size_t everRegistered(const void* data, size_t bytes) {
  return count(&history, data, bytes);
}
static size_t registrations(void) {
  pthread_mutex_lock(&mutex);
  const size_t n = entries.n;
  pthread_mutex_unlock(&mutex);
  return n;
}

static size_t bytesWithin(Range outer, size_t least) {
  pthread_mutex_lock(&mutex);
  size_t sum = 0;
  for (size_t i = 0; i < sent.n; ++i) {
    const size_t bytes = sent.ranges[i].end - sent.ranges[i].begin;
    if (bytes >= least && holds(&outer, &sent.ranges[i])) sum += bytes;
  }
  pthread_mutex_unlock(&mutex);
  return sum;
}
static size_t bytesFrom(const void* data, size_t bytes) {
  return bytesWithin(rangeOf(data, bytes), 0);
}
static size_t bytesSent(size_t least) {
  const Range everything = {.end = UINTPTR_MAX};
  return bytesWithin(everything, least);
}
static void watchSent(void) {
  pthread_mutex_lock(&mutex);
  isWatched = 1;
  sent.n = 0;
  pthread_mutex_unlock(&mutex);
}

__attribute__((visibility("default"))) const TestNetMemory* testNetMemory(void) {
  static const TestNetMemory functions = {
      .refuse = refuse,
      .refusals = refusals,
      .faults = faults,
      .registrationsOf = registrationsOf,
      .everRegistered = everRegistered,
      .registrations = registrations,
      .bytesFrom = bytesFrom,
      .bytesSent = bytesSent,
      .watchSent = watchSent,
  };
  return &functions;
}
