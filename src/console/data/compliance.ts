/** Identity verification. The gateway has one application for each level, and answers with its state. */
import { bursar } from './gateway.ts'
import { resource } from './resource.ts'

/** Submitting nothing reads an application. */
export const verifications = {
  basic: resource(() => bursar.compliance.kyc({ level: 'basic' }), ['kyc.']),
  full: resource(() => bursar.compliance.kyc({ level: 'full' }), ['kyc.']),
}
