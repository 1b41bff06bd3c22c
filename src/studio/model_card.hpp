// A model for the page: what its sliders, axes and equations are made of.
#pragma once

#include "model/model.hpp"
#include "out/json.hpp"

namespace saltus {

/// Members of an open object.
void write_model_card(JsonWriter& json, const Model& model);

/// The options of how to compute, as a member: what the page makes controls of.
void write_options(JsonWriter& json);

/// The gallery, as a member.
void write_gallery(JsonWriter& json);

}  // namespace saltus
