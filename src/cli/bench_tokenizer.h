// The speed of a model's tokenizer on a text file: a part of vitrine bench.
#pragma once

#include <string>

#include "base/result.h"
#include "formats/model_file.h"

namespace vitrine {

// Prints the figures: medians of `repeat` rounds, each a tokenizer loaded anew that encodes the
// text for the first time (its words are not known yet) and then again; one thread.
Status bench_tokenizer(const ModelFile& file, const std::string& text_file, int repeat, bool json);

}  // namespace vitrine
