/** Lists project files, for tests that read them. */
import { readdirSync } from 'node:fs'

/** Every file below a folder that ends in `.ts` or `.tsx`, prefixed with the folder's path. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.parentPath.endsWith('/.build'))
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .sort()
}
