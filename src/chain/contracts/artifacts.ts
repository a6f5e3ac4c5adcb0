/**
 * Code of Safe, its 4337 module, its passkey signers and the EntryPoint. They are licensed under the GPL family, so
 * they are read from the installed packages during setup and no copy is kept here.
 */
import { createRequire } from 'node:module'
import { z } from 'zod'
import type { Hex } from '../../providers/chain/port.ts'

const require = createRequire(import.meta.url)

const artifact = z.object({ bytecode: z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]+$/)]) })

/** Creation code by contract. The module's lacks its constructor argument, the EntryPoint. */
export interface CreationCode {
  readonly entryPoint: Hex
  readonly safe: Hex
  readonly proxyFactory: Hex
  readonly module: Hex
  readonly moduleSetup: Hex
  readonly passkeySigners: Hex
  readonly passkeyVerifier: Hex
}

/** Reads the creation code from the installed packages. @throws Error when a package is missing. */
export function loadCreationCode(): CreationCode {
  const load = (path: string): Hex => artifact.parse(requireInstalled(path)).bytecode
  const safe = '@safe-global/safe-contracts/build/artifacts/contracts'
  const module = '@safe-global/safe-4337/build/artifacts/contracts'
  const passkey = '@safe-global/safe-passkey/build/artifacts/contracts'
  return {
    entryPoint: load('@account-abstraction/contracts/artifacts/EntryPoint.json'),
    safe: load(`${safe}/SafeL2.sol/SafeL2.json`),
    proxyFactory: load(`${safe}/proxies/SafeProxyFactory.sol/SafeProxyFactory.json`),
    module: load(`${module}/Safe4337Module.sol/Safe4337Module.json`),
    moduleSetup: load(`${module}/SafeModuleSetup.sol/SafeModuleSetup.json`),
    passkeySigners: load(`${passkey}/SafeWebAuthnSignerFactory.sol/SafeWebAuthnSignerFactory.json`),
    passkeyVerifier: load(`${passkey}/verifiers/FCLP256Verifier.sol/FCLP256Verifier.json`),
  }
}

/** The packages are optional, because not everyone may ship their licences. */
function requireInstalled(path: string): unknown {
  try {
    return require(path)
  } catch (cause) {
    throw new Error(
      'The contracts of a local chain are not installed: their packages are optional (see NOTICE). Run npm ci without --omit=optional, or set CHAIN=simulated or CHAIN_RPC_URL.',
      { cause },
    )
  }
}
