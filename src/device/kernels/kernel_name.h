// Names of kernels and of the fatbins ("families") that hold them, and which of them exist. tutti loads a family when
// its first kernel is needed.
#pragma once

#include <string>

#include "device/work.h"
#include "nccl.h"

namespace tutti::device {

constexpr const char* funcName(Func func) {
  switch (func) {
    case Func::Broadcast:
      return "Broadcast";
    case Func::Reduce:
      return "Reduce";
    case Func::AllGather:
      return "AllGather";
    case Func::ReduceScatter:
      return "ReduceScatter";
    case Func::AllReduce:
      return "AllReduce";
    case Func::SendRecv:
      return "SendRecv";
  }
  return "?";
}

constexpr const char* algorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Tree:
      return "Tree";
    case Algorithm::Ring:
      return "Ring";
    case Algorithm::CollNetDirect:
      return "CollNetDirect";
    case Algorithm::CollNetChain:
      return "CollNetChain";
    case Algorithm::Nvls:
      return "NVLS";
    case Algorithm::NvlsTree:
      return "NVLSTree";
    case Algorithm::Pat:
      return "PAT";
    case Algorithm::OneShot:
      return "OneShot";
    case Algorithm::Direct:
      return "Direct";
  }
  return "?";
}

constexpr const char* protocolName(Protocol protocol) {
  switch (protocol) {
    case Protocol::LL:
      return "LL";
    case Protocol::LL128:
      return "LL128";
    case Protocol::Simple:
      return "Simple";
  }
  return "?";
}

constexpr const char* devOpName(DevOp op) {
  switch (op) {
    case DevOp::Sum:
      return "Sum";
    case DevOp::Prod:
      return "Prod";
    case DevOp::Max:
      return "Max";
    case DevOp::Min:
      return "Min";
    case DevOp::PreMulSum:
      return "PreMulSum";
    case DevOp::SumPostDiv:
      return "SumPostDiv";
  }
  return "?";
}

/// The type's part of a kernel name; "?" for a value that is no type.
constexpr const char* typeName(ncclDataType_t type) {
  constexpr const char* kNames[] = {"i8",  "u8",  "i32", "u32",  "i64",  "u64",
                                    "f16", "f32", "f64", "bf16", "e4m3", "e5m2"};
  const int index = static_cast<int>(type);
  return index >= 0 && index < static_cast<int>(ncclNumTypes) ? kNames[index] : "?";
}

/// Bytes of one element; 0 for a value that is no type.
constexpr unsigned typeBytes(ncclDataType_t type) {
  constexpr unsigned kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const int index = static_cast<int>(type);
  return index >= 0 && index < static_cast<int>(ncclNumTypes) ? kBytes[index] : 0;
}

constexpr bool isInteger(ncclDataType_t type) {
  return static_cast<int>(type) <= static_cast<int>(ncclUint64);
}

/// Whether `func` combines values; the others only move bytes.
constexpr bool reduces(Func func) {
  return func == Func::AllReduce || func == Func::ReduceScatter || func == Func::Reduce;
}

/// Sums have kernels of their own; one kernel does every other operation and reads CollWork::op to know which.
constexpr bool sharesKernel(DevOp a, DevOp b) {
  return (a == DevOp::Sum) == (b == DevOp::Sum);
}

/// The type whose kernel does the work: copies of all types are copies of bytes, and sums modulo 2^n are the same for
/// signed and unsigned integers.
constexpr ncclDataType_t kernelType(Func func, DevOp op, ncclDataType_t type) {
  if (!reduces(func)) return ncclInt8;
  if (op != DevOp::Sum) return type;
  if (type == ncclUint8) return ncclInt8;
  if (type == ncclUint32) return ncclInt32;
  if (type == ncclUint64) return ncclInt64;
  return type;
}

/// Which algorithms and protocols a collective comes in; gen_kernels.py (METHODS) has the same list.
constexpr bool methodExists(Func func, Algorithm algorithm, Protocol protocol) {
  switch (algorithm) {
    case Algorithm::Ring:
      return func != Func::SendRecv;
    case Algorithm::OneShot:
      return func == Func::AllReduce && protocol != Protocol::LL128;
    case Algorithm::Direct: {
      const bool exists = func == Func::AllReduce || func == Func::ReduceScatter || func == Func::AllGather;
      return exists && protocol != Protocol::LL128;
    }
    case Algorithm::Pat:
      return (func == Func::AllGather || func == Func::ReduceScatter) && protocol == Protocol::Simple;
    case Algorithm::Tree:
      return func == Func::AllReduce;
    case Algorithm::CollNetDirect: {
      const bool exists = func == Func::AllReduce || func == Func::ReduceScatter || func == Func::AllGather;
      return exists && protocol == Protocol::Simple;
    }
    case Algorithm::CollNetChain:
      return func == Func::AllReduce && protocol == Protocol::Simple;
    case Algorithm::Nvls:
    case Algorithm::NvlsTree:
      break;
  }
  return false;
}

/// Whether a kernel for this combination is part of tutti (`-Donly_kernels` may have left it out of a build).
constexpr bool kernelExists(Func func, Algorithm algorithm, Protocol protocol, DevOp op, ncclDataType_t type) {
  if (typeBytes(type) == 0) return false;
  if (func == Func::SendRecv) return true;
  if (!methodExists(func, algorithm, protocol)) return false;
  if (!reduces(func)) return true;
  return op != DevOp::SumPostDiv || isInteger(type);
}

/// The fatbin that holds the kernel, e.g. "AllReduce_Ring_Simple_f32", "SendRecv_i8".
inline std::string kernelFamily(Func func, Algorithm algorithm, Protocol protocol, DevOp op, ncclDataType_t type) {
  std::string name = funcName(func);
  if (func != Func::SendRecv) name = name + "_" + algorithmName(algorithm) + "_" + protocolName(protocol);
  return name + "_" + typeName(kernelType(func, op, type));
}

/// The kernel's name in its module, e.g. "tutti_AllReduce_Ring_Simple_Sum_f32",
/// "tutti_AllReduce_Ring_Simple_Any_u8", "tutti_SendRecv_Copy_i8".
inline std::string kernelName(Func func, Algorithm algorithm, Protocol protocol, DevOp op, ncclDataType_t type) {
  std::string name = std::string("tutti_") + funcName(func);
  if (func != Func::SendRecv) name = name + "_" + algorithmName(algorithm) + "_" + protocolName(protocol);
  const char* opPart = !reduces(func) ? "Copy" : sharesKernel(op, DevOp::Sum) ? "Sum" : "Any";
  return name + "_" + opPart + "_" + typeName(kernelType(func, op, type));
}

}  // namespace tutti::device
