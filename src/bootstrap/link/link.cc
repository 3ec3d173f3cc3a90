#include "bootstrap/link/link.h"

#include <utility>

namespace tutti::bootstrap {
namespace {

constexpr std::size_t kCopyBelow = 4096;  ///< smaller payloads travel in one piece with their header

template <class T>
SharedBytes chunkOf(const T& value) {
  return std::make_shared<const Bytes>(encodeValue(value));
}

}  // namespace

Link::Link(Socket socket, ServerHandshake server, std::uint32_t maxFrame)
    : socket_(std::move(socket)), handshake_(server), maxFrame_(maxFrame) {
  expect(Stage::AwaitHello, sizeof(Hello));
}

Link::Link(Socket socket, ClientHandshake client, std::uint32_t maxFrame)
    : socket_(std::move(socket)), handshake_(client), maxFrame_(maxFrame) {
  early_.push_back(chunkOf(client.hello()));
  expect(Stage::AwaitChallenge, sizeof(Challenge));
}

void Link::expect(Stage stage, std::size_t bytes) {
  stage_ = stage;
  in_.assign(bytes, std::byte{});
  got_ = 0;
}

void Link::send(FrameType type, std::int32_t tag, const SharedBytes& payload, std::uint8_t op) {
  const std::size_t bytes = payload ? payload->size() : 0;
  const FrameHeader header{static_cast<std::uint32_t>(bytes), static_cast<std::uint8_t>(type), op, 0, tag};
  Bytes head = encodeValue(header);
  const bool together = bytes < kCopyBelow;
  if (together && payload) head.insert(head.end(), payload->begin(), payload->end());
  out_.push_back(std::make_shared<const Bytes>(std::move(head)));
  if (!together) out_.push_back(payload);
}

void Link::receive(std::vector<Frame>& frames) {
  while (!end_) {
    const IoOutcome outcome = socket_.tryRecv(std::span(in_).subspan(got_));
    if (outcome.kind == IoOutcome::Kind::WouldBlock) return;
    if (outcome.kind == IoOutcome::Kind::Closed) {
      end_ = End{End::Kind::Closed};
    } else if (!outcome.done()) {
      end_ = End{End::Kind::Broken, outcome.error};
    } else {
      got_ += outcome.bytes;
      if (got_ == in_.size()) onComplete(frames);
    }
  }
}

void Link::onComplete(std::vector<Frame>& frames) {
  switch (stage_) {
    case Stage::AwaitHello:
      return onHello();
    case Stage::AwaitProof:
      return onProof();
    case Stage::AwaitChallenge:
      return onChallenge();
    case Stage::Header:
      return onHeader(frames);
    case Stage::Payload:
      frames.push_back({header_, std::move(in_)});
      return expect(Stage::Header, sizeof(FrameHeader));
  }
}

void Link::refuse(Verdict verdict) {
  end_ = End{End::Kind::Refused, 0, verdict};
}

void Link::onHello() {
  Challenge challenge;
  const Verdict verdict = std::get<ServerHandshake>(handshake_).challenge(*decodeValue<Hello>(in_), challenge);
  if (verdict == Verdict::Ok || verdict == Verdict::OtherVersion) {
    early_.push_back(chunkOf(challenge));
    flush();
  }
  if (verdict != Verdict::Ok) return refuse(verdict);
  expect(Stage::AwaitProof, sizeof(Proof));
}

void Link::onProof() {
  const Verdict verdict = std::get<ServerHandshake>(handshake_).verify(*decodeValue<Proof>(in_));
  if (verdict != Verdict::Ok) return refuse(verdict);
  expect(Stage::Header, sizeof(FrameHeader));
  flush();
}

void Link::onChallenge() {
  Proof proof;
  const Verdict verdict = std::get<ClientHandshake>(handshake_).answer(*decodeValue<Challenge>(in_), proof);
  if (verdict != Verdict::Ok) return refuse(verdict);
  early_.push_back(chunkOf(proof));
  expect(Stage::Header, sizeof(FrameHeader));
  flush();
}

void Link::onHeader(std::vector<Frame>& frames) {
  header_ = *decodeValue<FrameHeader>(in_);
  if (header_.type == 0 || header_.type > kLastFrameType || header_.bytes > maxFrame_) return refuse(Verdict::NotTutti);
  if (header_.bytes > 0) return expect(Stage::Payload, header_.bytes);
  frames.push_back({header_, {}});
  expect(Stage::Header, sizeof(FrameHeader));
}

bool Link::flushQueue(std::deque<SharedBytes>& queue) {
  while (!queue.empty()) {
    const IoOutcome outcome = socket_.trySend(std::span(*queue.front()).subspan(sent_));
    if (outcome.kind == IoOutcome::Kind::WouldBlock) return false;
    if (!outcome.done()) {
      writeFailed_ = true;
      return false;
    }
    sent_ += outcome.bytes;
    if (sent_ < queue.front()->size()) continue;
    queue.pop_front();
    sent_ = 0;
  }
  return true;
}

void Link::flush() {
  if (writeFailed_) {
    early_.clear();
    out_.clear();
    return;
  }
  if (flushQueue(early_) && open()) flushQueue(out_);
}

}  // namespace tutti::bootstrap
