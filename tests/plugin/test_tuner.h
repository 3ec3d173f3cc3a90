/* What the test tuners tell the tests about how they were called, and how they are made to behave. C and C++.
 *
 * A test tuner reads TEST_TUNER at each init: a comma list of
 *   init, info, chunk, end      an error in that call
 *   sleeps                      init does not return for ten minutes
 *   silent, odd-code            errors have no message; are no result codes
 *   take=A/P                    that combination is the tuner's choice, by numbers; version 2 answers with them
 *   forbid                      nothing may be taken; forbid=A/P: not that one
 *   revive=A/P                  writes 0.0 there, whatever stands there
 *   even                        all that is possible takes 1 us
 *   nan=A/P                     writes what is no number there
 *   channels=N, size=N          that many channels, bytes of a chunk
 *   base=A/P/N                  a base latency of N us (from version 5 on)
 *   twice                       all constants are doubled (from version 5 on)
 *   proto=X                     init sets NCCL_PROTO to that
 * What stands behind a '|' are the rules of every second init since the library was loaded. */
#ifndef TEST_TUNER_H_
#define TEST_TUNER_H_

#include "nccl_tuner.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int inits, ends, questions, chunkQuestions; /**< since the library was loaded */
  int strangers;                              /**< calls with a context that is none of init's */
  /* Of the last init. */
  size_t nRanks, nNodes;
  uint64_t commId;
  ncclNvlDomainInfo_v5_t domains;
  ncclTunerConstants_v5_t constants;
  /* Of the last question. */
  int func, pipeOps, registered, collNet, nvls, algorithmIn, protocolIn, channelsIn, nAlgorithms, nProtocols;
  size_t bytes;
  float times[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  /* Of the last question about a chunk. */
  int chunkFunc, chunkAlgorithm, chunkProtocol, chunkChannels;
  size_t chunkBytes, chunkIn;
} TestTunerRecord;

/** Each test tuner exports it as "testTunerRecord": a copy of what it has recorded. */
typedef TestTunerRecord TestTunerRecordFunction(void);

#ifdef __cplusplus
}
#endif

#endif
