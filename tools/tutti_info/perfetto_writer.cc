#include "perfetto_writer.h"

#include <algorithm>
#include <iterator>
#include <protozero/pbf_writer.hpp>
#include <tuple>

namespace tutti::tool {

namespace {

using protozero::pbf_writer;

// Fields, by message.
namespace file_field {
constexpr std::uint32_t kPacket = 1;
}
namespace packet_field {
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kSequenceFlags = 13, kTrackDescriptor = 60;
}
namespace track_field {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5;
}
namespace process_field {
constexpr std::uint32_t kPid = 1, kName = 6;
}
namespace thread_field {
constexpr std::uint32_t kPid = 1, kTid = 2, kName = 5;
}
namespace event_field {
constexpr std::uint32_t kFact = 4, kType = 9, kTrack = 11, kCategory = 22, kName = 23, kFlow = 47, kFlowEnd = 48;
}
namespace fact_field {
constexpr std::uint32_t kNumber = 3, kText = 6, kName = 10;
}

enum class EventType : std::int32_t { SliceBegin = 1, SliceEnd = 2, Instant = 3 };
constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kStateCleared = 1;  ///< of the first packet: nothing came before it

void writePacket(std::string& file, const std::string& packet) {
  pbf_writer(file).add_message(file_field::kPacket, packet);
}

void writeFacts(pbf_writer& event, const TimelineEvent& from) {
  for (const Fact& fact : from.facts) {
    pbf_writer written(event, event_field::kFact);
    written.add_string(fact_field::kName, fact.name);
    if (const auto* number = std::get_if<std::uint64_t>(&fact.value)) {
      written.add_uint64(fact_field::kNumber, *number);
    } else {
      written.add_string(fact_field::kText, std::get<std::string>(fact.value));
    }
  }
}

std::string eventPacket(std::uint64_t time, std::uint64_t track, EventType type, const TimelineEvent* from) {
  std::string packet;
  pbf_writer writer(packet);
  writer.add_uint64(packet_field::kTimestamp, time);
  writer.add_uint32(packet_field::kSequence, kSequence);
  pbf_writer event(writer, packet_field::kTrackEvent);
  event.add_int32(event_field::kType, static_cast<std::int32_t>(type));
  event.add_uint64(event_field::kTrack, track);
  if (from == nullptr) return packet;
  event.add_string(event_field::kName, from->name);
  event.add_string(event_field::kCategory, from->category);
  for (const std::uint64_t flow : from->flows) event.add_fixed64(event_field::kFlow, flow);
  for (const std::uint64_t flow : from->flowEnds) event.add_fixed64(event_field::kFlowEnd, flow);
  writeFacts(event, *from);
  return packet;
}

/// Slices of one lane are nested, or follow each other.
struct Lane {
  std::uint64_t id = 0;
  std::vector<std::uint64_t> open;  ///< ends, the innermost last
};

}  // namespace

std::uint64_t PerfettoWriter::addTrack(Track track) {
  track.id = nextId_++;
  tracks_.push_back(std::move(track));
  return tracks_.back().id;
}

std::uint64_t PerfettoWriter::process(std::uint32_t pid, const std::string& name) {
  return addTrack({0, 0, name, pid, 0, {}});
}

std::uint64_t PerfettoWriter::thread(std::uint64_t process, std::uint32_t pid, std::uint32_t tid,
                                     const std::string& name) {
  return addTrack({0, process, name, pid, tid, {}});
}

std::uint64_t PerfettoWriter::track(std::uint64_t parent, const std::string& name) {
  return addTrack({0, parent, name, 0, 0, {}});
}

void PerfettoWriter::add(std::uint64_t track, TimelineEvent event) {
  const auto of = std::lower_bound(tracks_.begin(), tracks_.end(), track,
                                   [](const Track& one, std::uint64_t id) { return one.id < id; });
  if (of != tracks_.end() && of->id == track) of->events.push_back(std::move(event));
}

void PerfettoWriter::describe(const Track& track, std::uint64_t id, std::string& file) {
  std::string packet;
  {
    pbf_writer writer(packet);
    writer.add_uint32(packet_field::kSequence, kSequence);
    if (file.empty()) writer.add_uint32(packet_field::kSequenceFlags, kStateCleared);
    pbf_writer described(writer, packet_field::kTrackDescriptor);
    described.add_uint64(track_field::kUuid, id);
    if (track.parent != 0) described.add_uint64(track_field::kParent, track.parent);
    if (track.tid != 0 && id == track.id) {
      pbf_writer thread(described, track_field::kThread);
      thread.add_int32(thread_field::kPid, static_cast<std::int32_t>(track.pid));
      thread.add_int32(thread_field::kTid, static_cast<std::int32_t>(track.tid));
      thread.add_string(thread_field::kName, track.name);
    } else if (track.parent == 0) {
      pbf_writer process(described, track_field::kProcess);
      process.add_int32(process_field::kPid, static_cast<std::int32_t>(track.pid));
      process.add_string(process_field::kName, track.name);
    } else {
      described.add_string(track_field::kName, track.name);
    }
  }
  writePacket(file, packet);
}

void PerfettoWriter::writeTrack(Track& track, std::string& file, std::vector<Edge>& edges) {
  std::stable_sort(track.events.begin(), track.events.end(), [](const TimelineEvent& a, const TimelineEvent& b) {
    return std::tuple(a.begin, ~a.end) < std::tuple(b.begin, ~b.end);
  });
  std::vector<Lane> lanes{{track.id, {}}};
  describe(track, track.id, file);
  const auto close = [&](Lane& lane, std::uint64_t until) {
    for (; !lane.open.empty() && lane.open.back() <= until; lane.open.pop_back()) {
      edges.emplace_back(lane.open.back(), eventPacket(lane.open.back(), lane.id, EventType::SliceEnd, nullptr));
    }
  };
  for (const TimelineEvent& event : track.events) {
    if (event.begin == event.end) {
      edges.emplace_back(event.begin, eventPacket(event.begin, track.id, EventType::Instant, &event));
      continue;
    }
    for (Lane& lane : lanes) close(lane, event.begin);
    auto lane = std::find_if(lanes.begin(), lanes.end(),
                             [&](const Lane& one) { return one.open.empty() || one.open.back() >= event.end; });
    if (lane == lanes.end()) {
      lanes.push_back({nextId_++, {}});
      lane = std::prev(lanes.end());
      describe(track, lane->id, file);
    }
    edges.emplace_back(event.begin, eventPacket(event.begin, lane->id, EventType::SliceBegin, &event));
    lane->open.push_back(event.end);
  }
  for (Lane& lane : lanes) close(lane, UINT64_MAX);
}

std::string PerfettoWriter::finish() {
  std::string file;
  std::vector<Edge> edges;
  for (Track& track : tracks_) writeTrack(track, file, edges);
  // Of one track and moment, what ends comes before what begins: as they were made.
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.first < b.first; });
  for (const auto& [time, packet] : edges) writePacket(file, packet);
  return file;
}

}  // namespace tutti::tool
