// A room that has no sources yet.
