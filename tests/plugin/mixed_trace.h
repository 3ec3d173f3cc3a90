/* What a library of several kinds of plugin writes of its calls: a line into the file MIXED_TRACE when the library is
 * loaded, when a life of one of its kinds begins (an init), is used for the first time and ends (its finalize), when
 * the library is unloaded, and for all that is called in a wrong order: those begin with WRONG. Any thread. C only. */
#ifndef MIXED_TRACE_H_
#define MIXED_TRACE_H_

#include <stdatomic.h>

/** From an init to its finalize. Places are never used again: a call of what has ended is seen. */
typedef struct {
  const char* kind;
  int number; /**< among its kind's since loading, from 1 on */
  atomic_int alive, running, used;
} TracedLife;

/** One whole line. */
void traceLine(const char* format, ...) __attribute__((format(printf, 1, 2)));

TracedLife* beginLife(const char* kind);
/** Around every other call of that life; null: of one that never began. */
void enterLife(TracedLife* life, const char* call);
void leaveLife(TracedLife* life);
/** `facts`: what else the line is to say. */
void endLife(TracedLife* life, const char* facts);

#endif
