// What a NIC's codes mean, in words, with what to do about them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

/// "IBV_WC_RETRY_EXC_ERR": the name that manuals and forums have for it.
std::string_view statusName(ibv_wc_status status);
/// What it means and what to look at, after a blank: " The peer's NIC acknowledged nothing …"; "" of success.
std::string_view statusRemedy(ibv_wc_status status);
/// The same of an errno with which work was refused.
std::string_view postRemedy(int error);

}  // namespace tutti::net::ib
