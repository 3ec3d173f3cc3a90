// The primitives of each protocol under one name: algorithms are written once for all of them.
#pragma once

#include "device/prims_simple.h"
#include "device/work.h"

namespace tutti::device {

template <Protocol kProtocol, class T, class Op>
struct PrimsFor;
template <class T, class Op>
struct PrimsFor<Protocol::Simple, T, Op> {
  using Type = PrimsSimple<T, Op>;
};

/// Primitives with one incoming and one outgoing connection.
template <Protocol kProtocol, class T, class Op>
using PrimsOf = typename PrimsFor<kProtocol, T, Op>::Type;

}  // namespace tutti::device
