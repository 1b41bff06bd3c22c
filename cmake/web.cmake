# The page of the studio lives inside the program: every file of web/ becomes bytes by .incbin, and a row of a table.
file(GLOB web_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/*.html ${CMAKE_SOURCE_DIR}/web/*.css
  ${CMAKE_SOURCE_DIR}/web/*.js ${CMAKE_SOURCE_DIR}/web/*.svg)
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(bytes "")
set(rows "")
foreach(file IN LISTS web_files)
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE ".*\\." "" kind ${name})
  string(MAKE_C_IDENTIFIER web_${name} symbol)
  string(APPEND bytes "asm(\".section .rodata\\n\" \"${symbol}:\\n.incbin \\\"${file}\\\"\\n${symbol}_end:\\n.byte 0\\n.previous\");\n")
  string(APPEND bytes "extern \"C\" const char ${symbol}[], ${symbol}_end[];\n")
  string(APPEND rows "    {\"/${name}\", \"${type_${kind}}\", {${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})}},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/web_data.cpp @ONLY CONTENT "#include \"studio/assets.hpp\"

@bytes@
namespace saltus {

std::span<const Asset> assets() {
  static const Asset all[] = {
@rows@  };
  return all;
}

}  // namespace saltus
")
set_source_files_properties(${CMAKE_BINARY_DIR}/web_data.cpp PROPERTIES OBJECT_DEPENDS "${web_files}"
  SKIP_UNITY_BUILD_INCLUSION ON)  # in a batch it would not be compiled anew where a page changes
target_sources(saltus_studio PRIVATE ${CMAKE_BINARY_DIR}/web_data.cpp)
