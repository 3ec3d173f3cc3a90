/* What the profiler plugins of the tests remember of each call, and the functions that they export besides. Their init
 * sets NCCL_PROTO to what TEST_PROFILER_PROTO says, and does not return for ten minutes where TEST_PROFILER_SLEEPS is
 * set. Where TEST_PROFILER_REFUSES is N, the Nth init after testProfilerReset() fails; where TEST_PROFILER_NO_CONTEXT
 * is set, init leaves *context as it is. With TEST_PROFILER_FILE they want the kinds of TEST_PROFILER_MASK, and write
 * each call into FILE.PID: call, context, type, handle, parent, rank, text, with tabs between. */
#ifndef TEST_PROFILER_H_
#define TEST_PROFILER_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Calls that there is room for; later ones are forgotten. */
enum { TEST_PROFILER_MOST = 20000 };

/** One call of the library. Handles and contexts are numbers from 1 on, none twice in a process; 0 stands for NULL. */
typedef struct {
  char call[12];  /**< init, start, stop, state, finalize */
  int version;    /**< of the table */
  int context;    /**< init, start, finalize: number of the communicator */
  long type;      /**< init: what it returns; start: of the event; state: which */
  long handle;    /**< start: given; stop, state: taken */
  long parent;    /**< start */
  int rank;       /**< start: the descriptor's; init: the communicator's */
  char text[240]; /**< what else the descriptor says */
} TestProfilerRecord;

/** Exported twice. testProfilerWant: from now on plugins ask for `mask` at init, and immediately where one is loaded.
 * testProfilerReset: the same, and forgets all calls but the inits of contexts that have not ended. */
typedef void TestProfilerReset_fn(int mask);
/** Copies at most `room` records, in order of the calls; how many there are. */
typedef int TestProfilerRead_fn(TestProfilerRecord* records, int room);
/** init() fails with that code; 0: it does not. `silent`: events get no handles. `bare`: all calls fail. */
typedef void TestProfilerFail_fn(int initCode, int silent, int bare);

#ifdef __cplusplus
}
#endif

#endif
