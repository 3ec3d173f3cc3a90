#include "plugin/mixed_trace.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMostLives = 256 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TracedLife lives[kMostLives];
static int nLives;

/* One write to the end of the file: a part that is no C may write there as well. */
void traceLine(const char* format, ...) {
  const char* path = getenv("MIXED_TRACE");
  if (path == NULL) return;
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  pthread_mutex_lock(&mutex);
  FILE* file = fopen(path, "a");
  if (file == NULL) abort();
  fprintf(file, "%s\n", text);
  fclose(file);
  pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void loaded(void) {
  traceLine("load");
  if (getenv("MIXED_LOAD_SLEEPS") != NULL) sleep(600);
}
/* After those of the library's other parts, which have no priority. */
__attribute__((destructor(200))) static void unloaded(void) {
  for (int i = 0; i < nLives; ++i) {
    if (lives[i].alive) traceLine("WRONG %s %d has not ended", lives[i].kind, lives[i].number);
  }
  traceLine("unload");
}

TracedLife* beginLife(const char* kind) {
  pthread_mutex_lock(&mutex);
  if (nLives == kMostLives) abort();
  int number = 1;
  for (int i = 0; i < nLives; ++i) number += strcmp(lives[i].kind, kind) == 0;
  TracedLife* life = &lives[nLives++];
  life->kind = kind;
  life->number = number;
  life->alive = 1;
  pthread_mutex_unlock(&mutex);
  traceLine("%s %d begins", kind, number);
  return life;
}

void enterLife(TracedLife* life, const char* call) {
  if (life == NULL) {
    traceLine("WRONG %s of what has never begun", call);
    return;
  }
  atomic_fetch_add(&life->running, 1);
  if (!life->alive) traceLine("WRONG %s %d: %s after its end", life->kind, life->number, call);
  if (!life->used && !atomic_exchange(&life->used, 1)) traceLine("%s %d is used", life->kind, life->number);
}

void leaveLife(TracedLife* life) {
  if (life != NULL) atomic_fetch_sub(&life->running, 1);
}

void endLife(TracedLife* life, const char* facts) {
  if (life == NULL) {
    traceLine("WRONG end of what has never begun");
    return;
  }
  if (life->running != 0) traceLine("WRONG %s %d ends with %d calls inside", life->kind, life->number, life->running);
  if (!atomic_exchange(&life->alive, 0)) traceLine("WRONG %s %d ends again", life->kind, life->number);
  traceLine("%s %d ends: %s", life->kind, life->number, facts);
}
