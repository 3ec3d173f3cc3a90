// The primitives of each protocol under one name: algorithms are written once for all of them.
#pragma once

#include "device/prims/prims_ll.h"
#include "device/prims/prims_ll128.h"
#include "device/prims/prims_simple.h"
#include "device/work.h"

namespace tutti::device {

template <Protocol kProtocol, class T, class Op, class FanOf>
struct PrimsFor;
template <class T, class Op, class FanOf>
struct PrimsFor<Protocol::LL, T, Op, FanOf> {
  using Type = PrimsLL<T, Op, FanOf>;
};
template <class T, class Op, class FanOf>
struct PrimsFor<Protocol::LL128, T, Op, FanOf> {
  using Type = PrimsLL128<T, Op, FanOf>;
};
template <class T, class Op, class FanOf>
struct PrimsFor<Protocol::Simple, T, Op, FanOf> {
  using Type = PrimsSimple<T, Op, FanOf>;
};

template <Protocol kProtocol, class T, class Op, class FanOf = Fan<1, 1>>
using PrimsOf = typename PrimsFor<kProtocol, T, Op, FanOf>::Type;

}  // namespace tutti::device
