// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20Upgradeable} from "@openzeppelin/contracts-upgradeable/token/ERC20/ERC20Upgradeable.sol";

/// @notice Base of every token on the sandbox chain: an ERC-20 that its minters issue.
/// The development node writes minters into storage; no transaction can add one.
/// No constructor: the runtime code is placed at the token's address and initialised by a transaction.
abstract contract SandboxToken is ERC20Upgradeable {
    /// @custom:storage-location erc7201:bursar.sandbox.token
    struct TokenStorage {
        mapping(address account => bool) minters;
        uint8 decimals;
    }

    error NotMinter();
    error LengthsDiffer();

    // keccak256(abi.encode(uint256(keccak256("bursar.sandbox.token")) - 1)) & ~bytes32(uint256(0xff))
    function _token() private pure returns (TokenStorage storage token) {
        bytes32 slot =
            keccak256(abi.encode(uint256(keccak256("bursar.sandbox.token")) - 1)) & ~bytes32(uint256(0xff));
        assembly {
            token.slot := slot
        }
    }

    function _initializeToken(string calldata name_, string calldata symbol_, uint8 decimals_)
        internal
        onlyInitializing
    {
        __ERC20_init(name_, symbol_);
        _token().decimals = decimals_;
    }

    function decimals() public view virtual override returns (uint8) {
        return _token().decimals;
    }

    /// @notice Mints to many addresses in one transaction.
    function mintBatch(address[] calldata to, uint256[] calldata value) external {
        require(_token().minters[msg.sender], NotMinter());
        require(to.length == value.length, LengthsDiffer());
        for (uint256 i = 0; i < to.length; ++i) {
            _mint(to[i], value[i]);
        }
    }

    /// @notice Mints to one address, as USDC does.
    function mint(address to, uint256 value) external returns (bool) {
        require(_token().minters[msg.sender], NotMinter());
        _mint(to, value);
        return true;
    }

    /// @notice Burns tokens of a minter, as USDC does.
    function burn(uint256 value) external {
        require(_token().minters[msg.sender], NotMinter());
        _burn(msg.sender, value);
    }
}
