// What errno says of a socket: whose trouble it is, whether it passes, what to do about it.
#pragma once

namespace tutti {

/// The peer is gone, in whatever words the system says so.
bool meansPeerGone(int error);
/// This host's own trouble, as opposed to a peer's or the network's.
bool isLocalTrouble(int error);
/// Of connect(): goes away when the other side, or the way to it, comes up.
bool mayComeUpYet(int error);
/// What to do about it, to follow the system's own words: ". Too many open files: raise ulimit -n"; "" where there is
/// nothing to say.
const char* socketRemedy(int error);

}  // namespace tutti
