// A model for the page: what its sliders, axes and equations are made of.
#pragma once

#include "model/model.hpp"
#include "out/json.hpp"

namespace saltus {

/// Members of an open object.
void write_model_card(JsonWriter& json, const Model& model);

/// The gallery, as a member.
void write_gallery(JsonWriter& json);

}  // namespace saltus
