#include "comm/plan/plan_text.h"

#include <fmt/format.h>

#include "base/log.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_context.h"
#include "comm/tuning/log.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

std::string collText(const device::CollWork& work) {
  return fmt::format("count {} root {} op {} channels {}-{} chunk {} in {} steps", work.count, work.root,
                     device::devOpName(work.op), work.channelLo, work.channelHi, work.chunkBytes, work.stepsPerChunk);
}

std::string messageText(const device::P2pWork& work) {
  std::string text;
  if (work.sendPeer >= 0) {
    text += fmt::format("to {} {} bytes {} ", work.sendPeer, work.sendBytes, device::protocolName(work.sendProtocol));
  }
  if (work.recvPeer >= 0) {
    text += fmt::format("from {} {} bytes {} ", work.recvPeer, work.recvBytes, device::protocolName(work.recvProtocol));
  }
  return text + fmt::format("channels {}-{}", work.channelLo, work.channelHi);
}

void logMessages(const PlannedLaunch& launch) {
  std::uint64_t out = 0, in = 0;
  unsigned ll = 0, simple = 0;
  for (const device::P2pWork& work : launch.messages()) {
    out += work.sendBytes;
    in += work.recvBytes;
    if (work.sendPeer >= 0) ++(work.sendProtocol == device::Protocol::LL ? ll : simple);
    if (work.recvPeer >= 0) ++(work.recvProtocol == device::Protocol::LL ? ll : simple);
  }
  info(kTuning,
       "SendRecv: {} Bytes out, {} Bytes in -> {} by LL, {} by SIMPLE, threads {} "
       "channel{{Lo..Hi}}={{{}..{}}}, {:.1f} us",
       out, in, ll, simple, launch.nThreads, launch.firstChannel, launch.firstChannel + launch.nChannels - 1,
       launch.latencyUs + launch.transferUs);
}

}  // namespace

void logDecisions(const PlanContext& context, const Plan& plan) {
  if (!detail::logEnabled(LogLevel::Info, kTuning)) return;
  for (const Decision& d : plan.decisions) {
    const char* name = device::funcName(d.request.func);
    info(kTuning, "{}: {} Bytes: weighed {}", name, d.request.bytes, describeCandidates(context.tuning, d.request));
    info(kTuning,
         "{}: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{{}..{}}} threads {} chunk {}, {} "
         "{:.1f} us",
         name, d.request.bytes, logName(d.choice.algorithm), logName(d.choice.protocol), d.channelLo, d.channelHi,
         d.choice.nThreads, d.choice.chunkBytes,
         d.choice.byPlugin ? "by the tuner plugin; the model expects" : "quickest with", d.choice.microseconds);
  }
  for (const PlannedLaunch& launch : plan.launches) {
    if (launch.func == device::Func::SendRecv) logMessages(launch);
  }
}

std::string describePlan(const Plan& plan) {
  std::string text;
  for (const PlannedLaunch& launch : plan.launches) {
    text += fmt::format("{} blocks {}-{} threads {}\n",
                        device::kernelName(launch.func, launch.algorithm, launch.protocol, launch.op, launch.type),
                        launch.firstChannel, launch.firstChannel + launch.nChannels - 1, launch.nThreads);
    for (const device::CollWork& work : launch.colls()) text += "  " + collText(work) + "\n";
    for (const device::P2pWork& work : launch.messages()) text += "  " + messageText(work) + "\n";
  }
  return text;
}

}  // namespace tutti::comm
