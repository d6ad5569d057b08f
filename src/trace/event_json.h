// Packed events as JSON, by the table of events.def.
#pragma once

#include <string>

#include "trace/step_log.h"

namespace vitrine {

// Appends the event's fields without the braces: "seq":7,"at_ns":..
void append_event_fields(std::string& out, const PackedEvent& event);
// A line of a `.vtr` file: {"event":"step","seq":7,..} and a line end.
void append_event_line(std::string& out, const PackedEvent& event);

}  // namespace vitrine
