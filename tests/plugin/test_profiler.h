/* What the profiler plugins of the tests remember of each call, and the functions that they export besides. Their init
 * sets NCCL_PROTO to what TEST_PROFILER_PROTO says, and does not return for ten minutes where TEST_PROFILER_SLEEPS is
 * set. With TEST_PROFILER_FILE they want the kinds of TEST_PROFILER_MASK, and write each call into FILE.PID: call,
 * context, type, handle, parent, rank, text, with tabs between. */
#ifndef TEST_PROFILER_H_
#define TEST_PROFILER_H_

#ifdef __cplusplus
extern "C" {
#endif

/** One call of the library. Handles are numbers from 1 on, 0 stands for NULL. */
typedef struct {
  char call[12];  /**< init, start, stop, state, finalize */
  int version;    /**< of the table */
  int context;    /**< init, start, finalize: number of the communicator, from 1 on */
  long type;      /**< start: of the event; state: which */
  long handle;    /**< start: given; stop, state: taken */
  long parent;    /**< start */
  int rank;       /**< start: the descriptor's; init: the communicator's */
  char text[240]; /**< what else the descriptor says */
} TestProfilerRecord;

/** Forgets all calls; from now on plugins ask for `mask` at init, and immediately where one is loaded. */
typedef void TestProfilerReset_fn(int mask);
/** Copies at most `room` records, in order of the calls; how many there are. */
typedef int TestProfilerRead_fn(TestProfilerRecord* records, int room);
/** init() fails with that code; 0: it does not. `silent`: events get no handles. `bare`: all calls fail. */
typedef void TestProfilerFail_fn(int initCode, int silent, int bare);

#ifdef __cplusplus
}
#endif

#endif
