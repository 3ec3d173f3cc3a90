/* The faults that a test plugin was told to commit; test_net.h has the grammar. C and C++. */
#ifndef TEST_NET_FAULTS_H_
#define TEST_NET_FAULTS_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Reads them from the environment, at the first call since the library was loaded. */
void readFaults(int version);
int hasFault(const char* name);
/** The number behind '=', or 0. */
long faultValue(const char* name);
/** Counts an occasion for a fault; whether it strikes. Any thread. */
int faultStrikes(const char* name);
/** Sleeps as many milliseconds as are behind '='. */
void sleepAsTold(const char* name);
/** Whether messages with that tag have no room just now. */
int tagStalls(int tag);

#ifdef __cplusplus
}
#endif

#endif
