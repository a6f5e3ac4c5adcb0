import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * URL of the folder of package.json, with a trailing slash. Files are resolved from there, so that bundling does not
 * matter.
 */
export function projectRoot(): URL {
  let directory = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(directory, 'package.json')) && directory !== dirname(directory))
    directory = dirname(directory)
  return pathToFileURL(join(directory, '/'))
}
