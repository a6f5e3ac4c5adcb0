/** Starts slow dependencies in parallel, with errors that name the failing one. */

import { rootCause } from '../failures/root-cause.ts'
import { splitHosts } from './host-urls.ts'

interface Closable {
  close(): Promise<void>
}

/** The variable and the host of its URL; the rest of the URL may be secret. */
export function describeVariable(variable: string, url: string | null): string | undefined {
  return url === null
    ? undefined
    : `${variable} (${splitHosts(url)
        .map((one) => new URL(one).host)
        .join(', ')})`
}

/** Prefixes a startup error with its variable and adds the root cause. */
export async function withVariableName<Part>(variable: string, part: Promise<Part>): Promise<Part> {
  try {
    return await part
  } catch (cause) {
    const [detail, root] = [cause instanceof Error ? cause.message : String(cause), rootCause(cause)]
    const [first = ''] = detail.split('\n')
    throw new Error(`${variable}: ${first}${root === detail ? '' : ` (${root.split('\n')[0]})`}`, { cause })
  }
}

/** Starts chains and database in parallel; if one side fails, the other is closed first. */
export async function startTogether<
  Chains extends { readonly started: readonly Closable[] },
  Database extends Closable,
>(startChains: () => Promise<Chains>, openDatabase: () => Promise<Database>): Promise<[Chains, Database]> {
  const [chains, database] = await Promise.allSettled([startChains(), openDatabase()])
  if (chains.status === 'fulfilled' && database.status === 'fulfilled') return [chains.value, database.value]
  if (chains.status === 'fulfilled') await Promise.all(chains.value.started.map((chain) => chain.close()))
  if (database.status === 'fulfilled') await database.value.close()
  throw database.status === 'rejected'
    ? database.reason
    : chains.status === 'rejected'
      ? chains.reason
      : new Error('unreachable')
}
