/** Files of the project, for tests that walk it. */
import { readdirSync } from 'node:fs'

/** Every file below a folder that ends in `.ts` or `.tsx`, with the folder's own path before it. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .sort()
}
