# Where things are installed. Components: program, library, development, python. What was not built is left out, so that
# `cmake --install` works after any command of the Makefile.
include(GNUInstallDirs)
option(SALTUS_DEBIAN "Files as Debian's policy wants them: for make deb" OFF)

# The install rules of a folder that follow are for those who have built this target.
macro(if_built target)
  install(CODE "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
  message(STATUS \"Not built, not installed: ${target}\")
  return()
endif()" ALL_COMPONENTS)
endmacro()

add_subdirectory(cmake/program)
add_subdirectory(cmake/library)

# cmake --build BUILD --target uninstall: removes what the last `cmake --install` wrote.
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -P ${CMAKE_SOURCE_DIR}/cmake/uninstall.cmake)
