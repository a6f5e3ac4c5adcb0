import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** The folder of package.json, with a slash at its end: what is read as a file is found from there, however the program was bundled. */
export function projectRoot(): URL {
  let directory = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(directory, 'package.json')) && directory !== dirname(directory))
    directory = dirname(directory)
  return pathToFileURL(join(directory, '/'))
}
