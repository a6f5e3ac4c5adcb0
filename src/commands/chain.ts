/** `bursar chain check | deploy`: the contracts on a configured chain. */
import { systemClock } from '../core/base/clock.ts'
import { createLog } from '../core/base/log.ts'
import type { ChainConfig, ConfiguredChain } from '../core/config/chains.ts'
import { readChainConfig, readKeyConfig } from '../core/config/read-config.ts'
import { chainFacts } from '../core/money/chains.ts'
import { createConfiguredKeys, loadChainContracts } from '../runtime.ts'

const usage = 'Usage: bursar chain check [CHAIN] [--json] | chain deploy [CHAIN] [--json]'

/** @returns the exit code: 0, or 1 when a contract is missing or different. @throws Error whose message is for a person. */
export async function chain(
  [action, wanted, ...rest]: readonly string[],
  { json: isJson = false }: { readonly json?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if ((action !== 'check' && action !== 'deploy') || rest.length > 0) throw new Error(usage)
  const { name, rpcUrl, rpcVariable: variable, sponsorKey } = chooseChain(readChainConfig(env), wanted)
  if (rpcUrl === null)
    throw new Error(`There is no node to ask. Set ${variable}; the local chain sets itself up.`)
  const node = { name, url: rpcUrl, variable }
  const { checkContractsOn, deployContractsOn } = await loadChainContracts()
  const print = (result: object, lines: readonly string[]) =>
    process.stdout.write(isJson ? `${JSON.stringify(result, null, 2)}\n` : `${lines.join('\n')}\n`)
  const { id: chainId, explorer } = chainFacts(name)
  const on = { chain: name, chainId }
  if (action === 'deploy') {
    const sponsor =
      sponsorKey === null
        ? null
        : await createConfiguredKeys(readKeyConfig(env)).openChainKey('CHAIN_SPONSOR_KEY', sponsorKey)
    const contracts = await deployContractsOn(node, {
      sponsor,
      clock: systemClock,
      log: createLog('warn'),
    })
    const lines = contracts.map(({ name: contract, address, bytes, transactionHash }) => {
      const how =
        transactionHash === null ? 'was there already' : `deployed: ${explorer}/tx/${transactionHash}`
      return `${contract} ${address} ${bytes} bytes, ${how}`
    })
    print({ ...on, contracts }, lines)
    return 0
  }
  const checks = await checkContractsOn(node)
  const isWell = checks.every(({ status }) => status === 'ok')
  const lines = checks.map(
    ({ name: contract, address, status, detail }) =>
      `${status === 'ok' ? '✓' : '✗'} ${contract} ${address}: ${detail}`,
  )
  print({ ok: isWell, ...on, checks }, lines)
  return isWell ? 0 : 1
}

/** The chain of this name; without a name the only one. @throws Error where it is not configured, or not clear. */
function chooseChain(chains: ChainConfig['chains'], wanted: string | undefined): ConfiguredChain {
  const [first, ...others] = chains
  const names = chains.map(({ name }) => name).join(', ')
  if (wanted === undefined && others.length === 0) return first
  if (wanted === undefined) throw new Error(`CHAINS names several chains. Name one of them: ${names}.`)
  const found = chains.find(({ name }) => name === wanted)
  if (found === undefined) throw new Error(`CHAINS does not name ${wanted}. It names ${names}.`)
  return found
}
