#include "comm/settings/current_settings.h"

#include "base/environment.h"
#include "base/settings/params.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/set_by_plugin.h"

namespace tutti::comm {

void readCommSettings() {
  static_cast<void>(Params::process());
}

Params currentSettings() {
  return Params::process().forCommunicator(settingsSource(), SetByPlugin::process().names());
}

CommSettings currentCommSettings() {
  return commSettingsFrom(currentSettings());
}

}  // namespace tutti::comm
