/* The types of one version of the interfaces: test_net.c and test_collnet.c. Without TEST_NET_VERSION, of the newest. C
 * and C++. */
#ifndef TEST_NET_VERSION_H_
#define TEST_NET_VERSION_H_

#include <stddef.h>

#include "nccl_net.h"

#ifdef TEST_NET_VERSION
#define V TEST_NET_VERSION
#else
#define V 12
#endif

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define VERSIONED(before, after) JOIN(before, V, after)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

#if V < 10
#define NETWORK_NAME "testv0" TEXT(TEST_NET_VERSION)
#else
#define NETWORK_NAME "testv" TEXT(TEST_NET_VERSION)
#endif

typedef VERSIONED(ncclNetProperties_v, _t) Properties;
#if V >= 8
typedef size_t RegisteredSize;
#else
typedef int RegisteredSize;
#endif
#if V >= 9
typedef size_t MessageSize;
#else
typedef int MessageSize;
#endif

#ifdef __cplusplus
extern "C" {
#endif

ncclResult_t propertiesOf(int ofCollNet, int device, Properties* props);

#ifdef __cplusplus
}
#endif

#endif
