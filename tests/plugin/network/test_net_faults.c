#include "plugin/network/test_net_faults.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMostFaults = 16 };

typedef struct {
  char name[24];
  long after, value;
  atomic_long seen;
} Fault;

static Fault faults[kMostFaults];
static int nFaults;
static int wasRead;
static int stalledTag = -1;
static char stallFile[256];

static Fault* find(const char* name) {
  for (int i = 0; i < nFaults; ++i) {
    if (strcmp(faults[i].name, name) == 0) return &faults[i];
  }
  return NULL;
}

static void add(const char* word, size_t length) {
  const size_t end = strcspn(word, "@=,");
  if (nFaults == kMostFaults || end == 0 || end >= sizeof faults[0].name) abort();
  Fault* fault = &faults[nFaults++];
  memcpy(fault->name, word, end);
  if (end >= length) return;
  *(word[end] == '@' ? &fault->after : &fault->value) = atol(word + end + 1);
}

void readFaults(int version) {
  if (wasRead) return;
  wasRead = 1;
  const char* stall = getenv("TEST_NET_STALL");
  if (stall != NULL && strchr(stall, ':') != NULL) {
    stalledTag = atoi(stall);
    snprintf(stallFile, sizeof stallFile, "%s", strchr(stall, ':') + 1);
  }
  char own[32];
  snprintf(own, sizeof own, "TEST_NET_FAULT_V%d", version);
  const char* text = getenv(own);
  if (text == NULL) text = getenv("TEST_NET_FAULT");
  while (text != NULL && *text != '\0') {
    const size_t length = strcspn(text, ",");
    if (length > 0) add(text, length);
    text += length + (text[length] == ',');
  }
}

int hasFault(const char* name) {
  return find(name) != NULL;
}

long faultValue(const char* name) {
  const Fault* fault = find(name);
  return fault != NULL ? fault->value : 0;
}

int faultStrikes(const char* name) {
  Fault* fault = find(name);
  return fault != NULL && atomic_fetch_add(&fault->seen, 1) >= fault->after;
}

void sleepAsTold(const char* name) {
  const long ms = faultValue(name);
  for (long i = 0; i < ms; ++i) usleep(1000);
}

int tagStalls(int tag) {
  return tag == stalledTag && access(stallFile, F_OK) == 0;
}
