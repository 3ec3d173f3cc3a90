// What a program of the adversary tells the campaign that started it: lines on a descriptor of their own, since a run
// may have closed the standard streams.
#pragma once
#include <string>
#include <string_view>

namespace tutti::adversary {

/// Says where report() writes: a descriptor that the campaign has opened. Before any thread is started.
void reportTo(int descriptor);

/// That descriptor.
int reportDescriptor();

/// Tells one event in one write: "SECONDS.MICROSECONDS RANK EVENT TEXT", with the monotonic clock that all processes of
/// the machine share. RANK is the number in the job, or -1 for the process. Line ends in `text` become blanks, and what
/// is beyond 3,000 bytes is cut, so that lines of several threads never mix. Any thread.
void report(int rank, std::string_view event, std::string_view text = {});

/// Microseconds of the monotonic clock.
long microsecondsNow();

}  // namespace tutti::adversary
